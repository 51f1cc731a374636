import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Read, process and write exactly once, with transactions.
 *
 * <pre>java -cp 'libs/*' ExactlyOnce.java localhost:9092 orders invoices invoicing worker-1 100</pre>
 *
 * Results and the offsets of the records that they were made from are committed in one transaction:
 * either both are visible or neither is. A process that crashes is replaced by another one with the
 * same transactional id; initTransactions() aborts what the old one left open and fences it, so that
 * it cannot write any more if it is not dead after all. Readers of the results must use
 * isolation.level=read_committed, which is not Java's default.
 *
 * <p>The program ends after the given number of records.
 */
public class ExactlyOnce {
    public static void main(String[] args) {
        int count = Integer.parseInt(args[5]);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumer(args[0], args[3]));
                KafkaProducer<String, String> producer = new KafkaProducer<>(producer(args[0], args[4]))) {
            producer.initTransactions();
            consumer.subscribe(List.of(args[1]));
            int done = 0;
            while (done < count) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                if (!records.isEmpty()) done += process(records, args[2], consumer, producer);
            }
            System.out.println(done + " records processed");
        }
    }

    static Map<String, Object> consumer(String servers, String group) {
        return Map.of(
                "bootstrap.servers", servers,
                "group.id", group,
                "enable.auto.commit", false,
                "auto.offset.reset", "earliest",
                "isolation.level", "read_committed",
                "max.poll.records", 10, // records per transaction
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class);
    }

    static Map<String, Object> producer(String servers, String transactionalId) {
        return Map.of(
                "bootstrap.servers", servers,
                "transactional.id", transactionalId, // implies acks=all and idempotence
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class);
    }

    /** One transaction: the results of the records, and the offsets after them; returns how many. */
    static int process(
            ConsumerRecords<String, String> records,
            String target,
            KafkaConsumer<String, String> consumer,
            KafkaProducer<String, String> producer) {
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(target, record.key(), "invoice for " + record.value()));
                offsets.put(
                        new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
            return records.count();
        } catch (ProducerFencedException
                | InvalidProducerEpochException
                | OutOfOrderSequenceException
                | AuthorizationException error) {
            throw error; // this producer cannot continue: another process has taken over, or may not
        } catch (KafkaException error) {
            producer.abortTransaction();
            rewind(records, consumer);
            return 0;
        }
    }

    /** Read the records of an aborted transaction again. */
    static void rewind(ConsumerRecords<String, String> records, KafkaConsumer<String, String> consumer) {
        for (TopicPartition partition : records.partitions()) {
            if (consumer.assignment().contains(partition)) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
        }
    }
}
