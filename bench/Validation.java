import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/** Prints, for each file with one batch, the CPU nanoseconds that Kafka takes to validate it. */
public class Validation {
    private static final int WARM_UPS = 5_000;
    private static final int ROUNDS = 15;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final BufferSupplier BUFFERS = BufferSupplier.create();

    public static void main(String[] paths) throws Exception {
        for (String path : paths) {
            ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(path)));
            validate(data, WARM_UPS);
            int repetitions = 1_000;
            long best = Long.MAX_VALUE;
            for (int round = 0; round < ROUNDS; round++) {
                best = Math.min(best, validate(data, repetitions) / repetitions);
            }
            System.out.println(best);
        }
    }

    private static long validate(ByteBuffer data, int repetitions) {
        long since = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < repetitions; i++) {
            MemoryRecords records = MemoryRecords.readableRecords(data.duplicate());
            CompressionType type = records.firstBatch().compressionType();
            new LogValidator(records, new TopicPartition("t", 0), Time.SYSTEM, type,
                    Compression.of(type).build(), false, (byte) 2, TimestampType.CREATE_TIME,
                    Long.MAX_VALUE, Long.MAX_VALUE, 0, AppendOrigin.CLIENT,
                    MetadataVersion.latestProduction())
                .validateMessagesAndAssignOffsets(
                    PrimitiveRef.ofLong(0), new Ignored(), BUFFERS);
        }
        return THREADS.getCurrentThreadCpuTime() - since;
    }

    private static class Ignored implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    }
}
