import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * Java's clients for kill_loop.py, all in one process: SERVERS ROLE... One thread per role prints
 * "commit ROLE DETAIL" for each acknowledged step and "error ROLE MESSAGE" for each failed one.
 * Clients are kept as long as Java's documentation allows: a transaction that fails is aborted and
 * repeated with the same producer, and only a fatal error replaces it ("replaced ROLE").
 */
public class KillLoopClients {
    static final String INPUT = "input";
    static final String OUTPUT = "output";
    static String servers;

    interface Role {
        void run(String name) throws Exception;
    }

    static synchronized void say(String what, String role, String detail) {
        System.out.println(what + " " + role + " " + detail.replace('\n', ' '));
    }

    static Map<String, Object> common() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return settings;
    }

    static KafkaConsumer<String, String> consumer(String group) {
        Map<String, Object> settings = common();
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("session.timeout.ms", "10000");
        settings.put("max.poll.records", "50");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(List.of(INPUT));
        return consumer;
    }

    /** An idempotent producer that writes numbers. */
    static void feed(String name) throws Exception {
        Map<String, Object> settings = common();
        settings.put("linger.ms", "5");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        int partitions = producer.partitionsFor(INPUT).size();
        for (int number = 0; ; number++) { // in turn: the default partitioner stays at one for long
            String value = Integer.toString(number);
            producer.send(new ProducerRecord<>(INPUT, number % partitions, null, value), (place, error) -> {
                if (error == null) {
                    say("commit", name, place.partition() + " " + place.offset() + " " + value);
                } else {
                    say("error", name, error.toString());
                }
            });
            Thread.sleep(20);
        }
    }

    /** A member of a group that commits what it has read. */
    static void read(String name) {
        KafkaConsumer<String, String> consumer = consumer("group");
        while (true) {
            try {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) continue;
                Map<TopicPartition, OffsetAndMetadata> offsets = ends(records);
                consumer.commitSync(offsets);
                say("commit", name, text(offsets));
            } catch (KafkaException error) {
                say("error", name, error.toString());
                rewind(consumer, name);
            }
        }
    }

    /** Copies the input to the output exactly once: records and offsets in one transaction. */
    static void transform(String name) {
        KafkaConsumer<String, String> consumer = consumer("transformers");
        KafkaProducer<String, String> producer = null;
        while (true) {
            try {
                if (producer == null) producer = transactional(name);
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (!records.isEmpty()) copy(name, consumer, producer, records);
            } catch (KafkaException error) {
                say("error", name, error.toString());
                producer = aborted(name, producer, error);
                rewind(consumer, name);
            }
        }
    }

    static KafkaProducer<String, String> transactional(String name) {
        Map<String, Object> settings = common();
        settings.put("transactional.id", name);
        settings.put("transaction.timeout.ms", "10000");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        try {
            producer.initTransactions();
            return producer;
        } catch (KafkaException error) {
            producer.close(Duration.ZERO);
            throw error;
        }
    }

    static void copy(
            String name,
            KafkaConsumer<String, String> consumer,
            KafkaProducer<String, String> producer,
            ConsumerRecords<String, String> records) {
        producer.beginTransaction();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(OUTPUT, record.partition(), null, record.value()));
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = ends(records);
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        while (true) {
            try {
                producer.commitTransaction();
                break;
            } catch (TimeoutException error) { // the outcome is open: the same call must be repeated
                say("error", name, error.toString());
            }
        }
        say("commit", name, text(offsets));
    }

    /** The producer after its transaction is aborted; null if it has to be replaced. */
    static KafkaProducer<String, String> aborted(
            String name, KafkaProducer<String, String> producer, KafkaException error) {
        if (producer == null) return null;
        boolean isFatal = error instanceof ProducerFencedException
                || error instanceof InvalidProducerEpochException
                || error instanceof OutOfOrderSequenceException
                || error instanceof AuthorizationException;
        if (!isFatal) {
            try {
                producer.abortTransaction();
                return producer;
            } catch (KafkaException failure) {
                say("error", name, "abort: " + failure);
            }
        }
        producer.close(Duration.ZERO);
        say("replaced", name, error.toString());
        return null;
    }

    /** Continue from the committed offsets. */
    static void rewind(KafkaConsumer<String, String> consumer, String name) {
        while (true) {
            try {
                Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(consumer.assignment());
                for (Map.Entry<TopicPartition, OffsetAndMetadata> each : found.entrySet()) {
                    long offset = each.getValue() == null ? 0 : each.getValue().offset();
                    consumer.seek(each.getKey(), offset);
                }
                return;
            } catch (FencedInstanceIdException error) {
                throw error;
            } catch (KafkaException error) {
                say("error", name, "committed: " + error);
            }
        }
    }

    static Map<TopicPartition, OffsetAndMetadata> ends(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            offsets.put(
                    new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
        }
        return offsets;
    }

    static String text(Map<TopicPartition, OffsetAndMetadata> offsets) {
        return offsets.entrySet().stream()
                .map(each -> each.getKey().partition() + ":" + each.getValue().offset())
                .collect(Collectors.joining(" "));
    }

    static Role role(String name) {
        if (name.startsWith("feeder")) return KillLoopClients::feed;
        if (name.startsWith("member")) return KillLoopClients::read;
        return KillLoopClients::transform;
    }

    public static void main(String[] args) {
        servers = args[0];
        for (String name : List.of(args).subList(1, args.length)) {
            Thread thread = new Thread(() -> {
                try {
                    role(name).run(name);
                } catch (Throwable error) {
                    say("error", name, "ended: " + error);
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            thread.start();
        }
    }
}
