// Prints what Apache Kafka 3.9.1's own classes write into znodes, one JSON object per line: the oracle of
// tests/metadata/test_znodes.py. Run with Kafka's jars: java -cp 'libs/*' EncodeZnodes.java > encoded.jsonl
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.*;
import kafka.api.LeaderAndIsr;
import kafka.controller.*;
import kafka.zk.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.feature.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.common.ProducerIdsBlock;
import scala.jdk.javaapi.CollectionConverters;

public class EncodeZnodes {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Uuid TOPIC_ID = Uuid.fromString("yfLe6UizRoODXPLAHdUccg");

    static void say(String path, byte[] data, List<String> order) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("path", path);
        line.put("data", new String(data, "UTF-8"));
        if (order != null) line.put("order", order);
        System.out.println(JSON.writeValueAsString(line));
    }
    static void say(String path, byte[] data) throws Exception { say(path, data, null); }
    static <T> scala.collection.immutable.List<T> list(List<T> l) { return CollectionConverters.asScala(l).toList(); }
    @SuppressWarnings({"unchecked", "rawtypes"})
    static scala.collection.immutable.Seq seq(Integer... l) { return list(Arrays.asList(l)); }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void topics() throws Exception {
        for (int n : new int[] {1, 2, 11, 12, 13, 25, 64, 200, 1000}) {
            Map<TopicPartition, ReplicaAssignment> m = new LinkedHashMap<>();
            for (int p = n - 1; p >= 0; p--)
                m.put(new TopicPartition("t", p), new ReplicaAssignment(seq(p % 3, (p + 1) % 3), p % 5 == 1 ? seq(7, 8) : seq(), p % 7 == 1 ? seq(9) : seq()));
            say("/brokers/topics/t" + n, TopicZNode.encode(scala.Option.apply(TOPIC_ID), CollectionConverters.asScala(m)));
            say("/brokers/topics/old" + n, TopicZNode.encode(scala.Option.empty(), CollectionConverters.asScala(m)));
        }
    }
    static void states() throws Exception {
        for (LeaderRecoveryState r : LeaderRecoveryState.values()) {
            LeaderAndIsr l = LeaderAndIsr.apply(3, 12, CollectionConverters.asScala(Arrays.<Object>asList(3, 1, 2)).toList(), r, 5);
            say("/brokers/topics/t/partitions/0/state", TopicPartitionStateZNode.encode(new LeaderIsrAndControllerEpoch(l, 44)));
        }
    }
    static void configs() throws Exception {
        List<String> all = new ArrayList<>(org.apache.kafka.storage.internals.log.LogConfig.configNames());
        Collections.sort(all);
        for (int n : new int[] {0, 1, 2, 5, 8, 11, 12, 13, all.size()}) {
            for (boolean reversed : new boolean[] {false, true}) {
                List<String> keys = new ArrayList<>(all.subList(0, n));
                if (reversed) Collections.reverse(keys);
                Properties p = new Properties();
                for (String k : keys) p.setProperty(k, "v/" + k.length());
                say("/config/topics/t" + n, ConfigEntityZNode.encode(p), keys);
            }
        }
        List<String> many = new ArrayList<>();
        Properties p = new Properties();
        for (int i = 0; i < 120; i++) { many.add("key." + i * 7919 + ".x"); p.setProperty(many.get(i), "é\"\\\n\u007f/<" + i); }
        say("/config/brokers/1", ConfigEntityZNode.encode(p), many);
        say("/config/changes/config_change_0000000000", ConfigEntityChangeNotificationSequenceZNode.encode("users/a%20b/clients/c"));
    }
    static void brokers() throws Exception {
        List<List<String>> all = Arrays.asList(
            Arrays.asList("PLAINTEXT"), Arrays.asList("SSL"), Arrays.asList("SSL", "PLAINTEXT"), Arrays.asList("A", "B", "C", "D"),
            Arrays.asList("EXTERNAL", "INTERNAL", "PLAINTEXT", "SASL_SSL", "REPLICATION"),
            Arrays.asList("EXTERNAL", "INTERNAL", "PLAINTEXT", "SASL_SSL", "REPLICATION", "CLIENT", "CONTROLLER", "X", "Y", "Z", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9", "L10", "L11", "L12", "L13", "L14", "L15", "L16", "L17", "L18", "L19", "L20"));
        for (int version : new int[] {5, 4, 2})
            for (List<String> names : all)
                for (String rack : new String[] {null, "r1"}) {
                    List<kafka.cluster.EndPoint> e = new ArrayList<>();
                    for (String n : names) {
                        SecurityProtocol sp = n.equals("SSL") ? SecurityProtocol.SSL : n.equals("SASL_SSL") ? SecurityProtocol.SASL_SSL : n.equals("PLAINTEXT") ? SecurityProtocol.PLAINTEXT : SecurityProtocol.SASL_PLAINTEXT;
                        e.add(new kafka.cluster.EndPoint(n.equals("B") ? "::1" : "host", 9092 + e.size(), new ListenerName(n), sp));
                    }
                    kafka.cluster.Broker b = new kafka.cluster.Broker(1, list(e), scala.Option.apply(rack), Features.emptySupportedFeatures());
                    say("/brokers/ids/1", BrokerIdZNode.encode(new BrokerInfo(b, version, version == 2 ? 9999 : -1)));
                }
    }
    static scala.collection.immutable.Set<TopicPartition> partitions(int n) {
        Set<TopicPartition> s = new LinkedHashSet<>();
        for (int i = 0; i < n; i++) s.add(new TopicPartition("topic-" + i % 3, i));
        return CollectionConverters.asScala(s).toSet();
    }
    @SuppressWarnings({"unchecked", "rawtypes"})
    static void admin() throws Exception {
        for (int n : new int[] {0, 1, 4}) {
            say("/isr_change_notification/isr_change_0000000000", IsrChangeNotificationSequenceZNode.encode(partitions(n)));
            say("/admin/preferred_replica_election", PreferredReplicaElectionZNode.encode(partitions(n)));
            Map<TopicPartition, scala.collection.Seq<Object>> m = new LinkedHashMap<>();
            for (int i = 0; i < n; i++) m.put(new TopicPartition("t", i), seq(i, 5));
            say("/admin/reassign_partitions", ReassignPartitionsZNode.encode(CollectionConverters.asScala(m)));
        }
        say("/log_dir_event_notification/log_dir_event_0000000000", LogDirEventNotificationSequenceZNode.encode(3));
    }
    @SuppressWarnings({"unchecked", "rawtypes"})
    static void features() throws Exception {
        for (int version : new int[] {1, 2}) {
            scala.collection.immutable.Map m = scala.collection.immutable.Map$.MODULE$.empty();
            say("/feature", FeatureZNode.encode(new FeatureZNode(version, FeatureZNodeStatus.Disabled$.MODULE$, m)));
            m = (scala.collection.immutable.Map) ((scala.collection.immutable.Map) m.updated("metadata.version", (short) 7)).updated("b", (short) 3);
            say("/feature", FeatureZNode.encode(new FeatureZNode(version, FeatureZNodeStatus.Enabled$.MODULE$, m)));
        }
    }
    static void acls() throws Exception {
        Set<AclEntry> s = new LinkedHashSet<>();
        for (AclOperation o : Arrays.asList(AclOperation.READ, AclOperation.DESCRIBE_CONFIGS, AclOperation.IDEMPOTENT_WRITE))
            s.add(new AclEntry(new AccessControlEntry("User:alice", "*", o, o == AclOperation.READ ? AclPermissionType.DENY : AclPermissionType.ALLOW)));
        say("/kafka-acl/Topic/orders", ResourceZNode.encode(CollectionConverters.asScala(s).toSet()));
        say("/kafka-acl-changes/acl_changes_0000000000", LiteralAclChangeStore.createChangeNode(new ResourcePattern(ResourceType.TRANSACTIONAL_ID, "a:b", PatternType.LITERAL)).bytes());
        say("/kafka-acl-extended-changes/acl_changes_0000000000", ExtendedAclChangeStore.createChangeNode(new ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED)).bytes());
    }
    static void tokens() throws Exception {
        KafkaPrincipal a = new KafkaPrincipal("User", "a b*"), r = new KafkaPrincipal("User", "r");
        say("/delegation_token/tokens/id", DelegationTokenInfoZNode.encode(new org.apache.kafka.common.security.token.delegation.TokenInformation("id-_1", a, r, Arrays.asList(r, a), 1, 300, 20)));
        say("/delegation_token/token_changes/token_change_0000000000", DelegationTokenChangeNotificationSequenceZNode.encode("id-_1"));
    }
    public static void main(String[] args) throws Exception {
        topics(); states(); configs(); brokers(); admin(); features(); acls(); tokens();
        say("/controller", ControllerZNode.encode(2, 1794788751357L, -1));
        say("/controller_epoch", ControllerEpochZNode.encode(17));
        say("/cluster/id", ClusterIdZNode.toJson("_sKXAzyITPuweRptJ5jjZw"));
        say("/latest_producer_id_block", ProducerIdBlockZNode.generateProducerIdBlockJson(new ProducerIdsBlock(2, 3000, 1000)));
        say("/consumers/g/offsets/t/0", ConsumerOffset.encode(1234567890123L));
        say("/migration", MigrationZNode.encode(new org.apache.kafka.metadata.migration.ZkMigrationLeadershipState(3000, 4, 55, 6, 7, 8, 9, 10)));
    }
}
