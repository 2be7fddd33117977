import type { Dialect } from "../../sql/dialect.ts";

export const sqliteDialect: Dialect = {
  userColumn: "user",
  senderColumns: [],
  lastMessagePlace: "(SELECT max(id) + 1 FROM messages)",
  senderTenant: "body ->> '$.sender.tenantId'",
  senderUser: "body ->> '$.sender.userId'",
};
