"""`python -m kctl` is `kctl`."""

from kctl.app import main

main()
