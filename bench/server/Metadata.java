import java.sql.*;

/** What BI tools on pgjdbc ask first: metadata, then a question, by plain and prepared statements. */
public class Metadata {
    public static void main(String[] words) throws Exception {
        var address = "jdbc:postgresql://" + words[0] + ":" + words[1] + "/" + words[3] + "?options=-c%20sfumato.epsilon%3D0.05";
        try (var connection = DriverManager.getConnection(address, words[2], words[4])) {
            var metadata = connection.getMetaData();
            count("tables", metadata.getTables(null, "public", "%", new String[] {"TABLE"}));
            count("columns", metadata.getColumns(null, "public", "visits", "%"));
            count("schemas", metadata.getSchemas());
            count("keys", metadata.getPrimaryKeys(null, "public", "visits"));
            count("imported", metadata.getImportedKeys(null, "public", "visits"));
            count("indices", metadata.getIndexInfo(null, "public", "visits", false, true));
            count("types", metadata.getTypeInfo());
            count("catalogs", metadata.getCatalogs());
            count("table types", metadata.getTableTypes());
            count("functions", metadata.getFunctions(null, null, "%"));
            count("procedures", metadata.getProcedures(null, null, "%"));
            count("privileges", metadata.getTablePrivileges(null, "public", "visits"));
            System.out.println(metadata.getDatabaseProductName() + " " + metadata.getDatabaseProductVersion());
            var prepared = connection.prepareStatement("SELECT COUNT(*) AS n FROM visits WHERE ward = ? AND age > ?");
            prepared.setString(1, "surgery");
            prepared.setDouble(2, 40);
            for (int i = 0; i < 7; i++) count("prepared", prepared.executeQuery()); // after five, binary
            connection.setAutoCommit(false);
            var statement = connection.createStatement();
            statement.setFetchSize(2);
            count("rows", statement.executeQuery("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"));
            connection.commit();
        }
    }

    static void count(String what, ResultSet rows) throws SQLException {
        int found = 0;
        while (rows.next()) found++;
        System.out.println("  ok    " + what + ": " + found);
    }
}
