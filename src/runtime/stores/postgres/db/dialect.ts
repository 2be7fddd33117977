import type { Dialect } from "../../sql/dialect.ts";

export const postgresDialect: Dialect = {
  userColumn: "user_name",
  senderColumns: ["sender_tenant", "sender_user"],
  // The inbox of the agent is locked.
  lastMessagePlace: "nextval('{message_places}')",
  senderTenant: "sender_tenant",
  senderUser: "sender_user",
};
