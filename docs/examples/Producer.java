import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produce records with keys, and know of each whether it was written.
 *
 * <pre>java -cp 'libs/*' Producer.java localhost:9092 orders 100</pre>
 *
 * Records with the same key go to the same partition, in order. With acks=all a record is
 * acknowledged when all in-sync replicas have it. The idempotent producer retries without writing a
 * record twice and without changing the order. A record that could not be written within
 * delivery.timeout.ms is reported, and the program ends with status 1.
 */
public class Producer {
    public static void main(String[] args) {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", args[0],
                "acks", "all",
                "enable.idempotence", true,
                "retries", Integer.MAX_VALUE, // as long as delivery.timeout.ms permits
                "delivery.timeout.ms", 30_000,
                "request.timeout.ms", 10_000,
                "linger.ms", 5, // wait this long for more records: larger batches, fewer requests
                "compression.type", "gzip",
                "key.serializer", StringSerializer.class,
                "value.serializer", StringSerializer.class);
        AtomicInteger written = new AtomicInteger();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                String customer = "customer-" + number % 10;
                // send() returns at once; the callback runs once per record, in a thread of the producer
                producer.send(new ProducerRecord<>(topic, customer, "order " + number), (place, error) -> {
                    if (error == null) {
                        written.incrementAndGet();
                    } else {
                        System.err.println("not written: " + error);
                    }
                });
            }
        } // close() waits until every record is written or has failed
        System.out.println(written + " of " + count + " records written");
        System.exit(written.get() == count ? 0 : 1);
    }
}
