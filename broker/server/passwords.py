"""Encrypted passwords in the dynamic settings of this broker."""

import logging

from broker.config import BrokerConfig
from broker.config.dynamic import ConfigStore, EntityType
from broker.config.reconfiguration import is_password
from broker.config.values import ConfigError
from broker.security.password_encoder import PasswordEncoder

logger = logging.getLogger(__name__)


def password_encoder(config: BrokerConfig) -> PasswordEncoder | None:
    """How dynamic passwords are encrypted; None if `password.encoder.secret` is not set."""
    if config.password_encoder_secret is None:
        return None
    return PasswordEncoder(
        config.password_encoder_secret,
        config.password_encoder_old_secret,
        config.password_encoder_keyfactory_algorithm,
        config.password_encoder_cipher_algorithm,
        config.password_encoder_key_length,
        config.password_encoder_iterations,
    )


async def encrypt_again(encoder: PasswordEncoder, store: ConfigStore, broker_id: int) -> None:
    """Encrypt the passwords of the old secret with the new one, if both are set."""
    if encoder.old_secret is None:
        return
    stored = await store.read(EntityType.BROKER, str(broker_id))
    changed = dict(stored)
    for key, text in stored.items():
        if is_password(key) and not encoder.is_current(text):
            try:
                changed[key] = encoder.encode(encoder.decode(text))
            except ConfigError as error:
                logger.error("cannot encrypt password again key=%s reason=%s", key, error)
    if changed != stored:
        await store.write(EntityType.BROKER, str(broker_id), changed)
        logger.info("encrypted dynamic passwords with the new secret")
