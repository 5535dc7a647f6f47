import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs a file of Flink SQL in this process, one slot. Usage: SqlRunner FILE [NAME=VALUE]..., where ${NAME} in the file becomes VALUE.
 *
 * <p>Statements end with a semicolon at the end of a line. Beside Flink's own there are three:
 *
 * <pre>
 * SET 'option' = 'value';
 * CHANGES name FROM 'file';            a view of the changes in a file, all columns STRING
 * MATERIALIZE 'file' AS SELECT ...;    applies the changes of a query and writes the rows that are left, sorted
 * </pre>
 *
 * <p>Files of changes have a head of column names, and in each line the kind of a row (+I, -U, +U, -D) and its cells; files of rows are
 * without kinds. Cells have tabs between, \N is NULL, and \t, \n, \r, \\ stand for what they say.
 */
public final class SqlRunner {
    private static final Pattern CHANGES = Pattern.compile("(?is)CHANGES\\s+(\\w+)\\s+FROM\\s+'([^']*)'");
    private static final Pattern MATERIALIZE = Pattern.compile("(?is)MATERIALIZE\\s+'([^']*)'\\s+AS\\s+(.*)");

    private static final Pattern SET = Pattern.compile("(?is)SET\\s+'([^']*)'\\s*=\\s*'([^']*)'");

    private final StreamTableEnvironment tables;
    private final StreamExecutionEnvironment streams;

    private SqlRunner() {
        Configuration configuration = new Configuration();
        configuration.setString("parallelism.default", "1");
        configuration.setString("taskmanager.numberOfTaskSlots", "1");
        streams = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        tables = StreamTableEnvironment.create(streams);
    }

    public static void main(String[] arguments) throws Exception {
        String text = Files.readString(Path.of(arguments[0]));
        for (String variable : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            String[] parts = variable.split("=", 2);
            text = text.replace("${" + parts[0] + "}", parts[1]);
        }
        SqlRunner runner = new SqlRunner();
        for (String statement : text.replaceAll("(?m)^--.*$", "").split(";\\s*(\n|$)")) {
            if (!statement.isBlank()) {
                runner.run(statement.strip());
            }
        }
    }

    private void run(String statement) throws Exception {
        Matcher changes = CHANGES.matcher(statement);
        Matcher materialize = MATERIALIZE.matcher(statement);
        Matcher set = SET.matcher(statement);
        if (changes.matches()) {
            declareChanges(changes.group(1), Path.of(changes.group(2)));
        } else if (materialize.matches()) {
            materialize(Path.of(materialize.group(1)), materialize.group(2));
        } else if (set.matches()) {
            tables.getConfig().set(set.group(1), set.group(2));
        } else {
            double before = cpuSeconds();
            TableResult result = tables.executeSql(statement);
            if (result.getJobClient().isPresent()) {
                var ended = result.getJobClient().get().getJobExecutionResult().get();
                System.out.printf("%d ms, %.2f CPU-seconds: %s%n",
                    ended.getNetRuntime(), cpuSeconds() - before, statement.replaceAll("\\s+", " "));
            }
        }
    }

    private void declareChanges(String name, Path file) throws Exception {
        List<String> lines = Files.readAllLines(file);
        String[] head = lines.get(0).split("\t", -1);
        String[] names = Arrays.copyOfRange(head, 1, head.length);
        List<Row> rows = new ArrayList<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] cells = line.split("\t", -1);
            Row row = Row.withNames(kind(cells[0]));
            for (int column = 0; column < names.length; column++) {
                row.setField(names[column], cell(cells[column + 1]));
            }
            rows.add(row);
        }
        TypeInformation<?>[] types = new TypeInformation<?>[names.length];
        Arrays.fill(types, Types.STRING);
        boolean onlyInserts = rows.stream().allMatch(row -> row.getKind() == RowKind.INSERT);
        ChangelogMode mode = onlyInserts ? ChangelogMode.insertOnly() : ChangelogMode.all();
        var stream = streams.fromData(rows, Types.ROW_NAMED(names, types));
        var table = tables.fromChangelogStream(stream, Schema.newBuilder().build(), mode);
        tables.createTemporaryView(name, table);
    }

    private void materialize(Path file, String query) throws Exception {
        TreeMap<String, Integer> rows = new TreeMap<>();
        TableResult result = tables.executeSql(query);
        List<String> head = result.getResolvedSchema().getColumnNames();
        try (CloseableIterator<Row> changes = result.collect()) {
            while (changes.hasNext()) {
                Row change = changes.next();
                List<String> cells = new ArrayList<>();
                for (int column = 0; column < change.getArity(); column++) {
                    cells.add(text(change.getField(column)));
                }
                String line = String.join("\t", cells);
                boolean adds = change.getKind() == RowKind.INSERT || change.getKind() == RowKind.UPDATE_AFTER;
                if (!adds && rows.getOrDefault(line, 0) == 0) {
                    throw new IllegalStateException("a change takes away a row that is not there: " + line);
                }
                rows.merge(line, adds ? 1 : -1, Integer::sum);
            }
        }
        List<String> lines = new ArrayList<>(List.of(String.join("\t", head)));
        rows.forEach((line, count) -> {
            for (int i = 0; i < count; i++) {
                lines.add(line);
            }
        });
        Files.write(file, lines);
        System.out.printf("%d rows: %s%n", lines.size() - 1, file.getFileName());
    }

    /** CPU time of this process since its start, with the compiler's and the collector's. */
    private static double cpuSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    private static RowKind kind(String symbol) {
        for (RowKind kind : RowKind.values()) {
            if (kind.shortString().equals(symbol)) {
                return kind;
            }
        }
        throw new IllegalArgumentException("not a kind of row: " + symbol);
    }

    private static String cell(String text) {
        if (text.equals("\\N")) {
            return null;
        }
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < text.length(); at++) {
            char character = text.charAt(at);
            if (character != '\\') {
                out.append(character);
                continue;
            }
            at++;
            switch (text.charAt(at)) {
                case 't' -> out.append('\t');
                case 'n' -> out.append('\n');
                case 'r' -> out.append('\r');
                default -> out.append(text.charAt(at));
            }
        }
        return out.toString();
    }

    private static String text(Object value) {
        if (value == null) {
            return "\\N";
        }
        return value.toString().replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }
}
