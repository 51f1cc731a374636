import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Consume in a group with manual commits: at least once, or at most once.
 *
 * <pre>java -cp 'libs/*' ConsumerGroup.java localhost:9092 orders billing at-least-once 100</pre>
 *
 * The partitions of the topic are shared among all processes of the group. The only difference
 * between the two guarantees is when the offsets are committed:
 *
 * <pre>
 * at-least-once   process, then commit: after a crash the last records are processed again
 * at-most-once    commit, then process: after a crash the last records are not processed
 * </pre>
 *
 * commitSync() commits the positions of the consumer, which are those after the last poll(). So the
 * unit is the records of one poll(), at most max.poll.records. The program ends after the given
 * number of records.
 */
public class ConsumerGroup {
    public static void main(String[] args) {
        String guarantee = args[3];
        int count = Integer.parseInt(args[4]);
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", args[0],
                "group.id", args[2],
                "enable.auto.commit", false,
                "auto.offset.reset", "earliest", // where a group without offsets begins
                "max.poll.records", 10,
                "partition.assignment.strategy", CooperativeStickyAssignor.class.getName(),
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", StringDeserializer.class);
        // close() leaves the group: others take over its partitions at once
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(args[1]));
            for (int processed = 0; processed < count; ) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) continue;
                if (guarantee.equals("at-most-once")) {
                    consumer.commitSync();
                    records.forEach(ConsumerGroup::process);
                } else {
                    records.forEach(ConsumerGroup::process);
                    consumer.commitSync();
                }
                processed += records.count();
            }
        }
    }

    /** Do the work of one record; here, print it. */
    static void process(ConsumerRecord<String, String> record) {
        System.out.printf(
                "%s-%d@%d %s: %s%n",
                record.topic(), record.partition(), record.offset(), record.key(), record.value());
    }
}
