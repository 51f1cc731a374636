// Records what Kafka's own Rate and TokenBucket measure for random sequences of events:
//   java -cp 'libs/*' RecordRates.java > rates.jsonl
// (Kafka 3.9.1, kafka-clients). The throttle time is that of QuotaUtils and
// ControllerMutationQuotaManager.
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

public class RecordRates {
    public static void main(String[] args) {
        Random random = new Random(42);
        for (int sequence = 0; sequence < 60; sequence++) {
            int samples = 1 + random.nextInt(12);
            int windowMs = 1000 * (1 + random.nextInt(3));
            double limit = 1 + random.nextInt(5000);
            MetricConfig config = new MetricConfig()
                .timeWindow(windowMs, TimeUnit.MILLISECONDS)
                .samples(samples)
                .quota(new Quota(limit, true));
            Rate rate = new Rate();
            TokenBucket bucket = new TokenBucket();
            long now = 1_700_000_000_000L;
            StringBuilder events = new StringBuilder();
            for (int event = 0; event < 60; event++) {
                int kind = random.nextInt(10);
                now += kind == 0 ? random.nextInt(40_000) : kind < 4 ? 0 : random.nextInt(700);
                double value = random.nextInt(6) == 0 ? -random.nextInt(1000) : random.nextInt(9000);
                rate.record(config, value, now);
                double measured = rate.measure(config, now);
                long elapsed = rate.windowSize(config, now);
                long throttle = measured <= limit ? 0
                    : Math.round((measured - limit) / limit * elapsed);
                bucket.record(config, Math.abs(value), now);
                double tokens = bucket.measure(config, now);
                long bucketThrottle = tokens >= 0 ? 0 : Math.round(-tokens / limit * 1000);
                events.append(event == 0 ? "" : ",").append(String.format(java.util.Locale.ROOT,
                    "[%d,%.1f,%s,%d,%d,%s,%d]", now, value, measured, elapsed, throttle, tokens,
                    bucketThrottle));
            }
            System.out.printf(java.util.Locale.ROOT,
                "{\"samples\":%d,\"window_ms\":%d,\"limit\":%.1f,\"events\":[%s]}%n",
                samples, windowMs, limit, events);
        }
    }
}
