/** The SQL in which the dialects differ. */
export interface Dialect {
  /** The column of the user in `usage_totals` and `allotments`. */
  readonly userColumn: string;
  /** The columns of `messages` for tenant and user of the sender. SQLite has none and reads them from the body. */
  readonly senderColumns: readonly string[];
  /** An id of a message that is greater than all ids of its agent. */
  readonly lastMessagePlace: string;
  /** Tenant and user of the sender of a message. */
  readonly senderTenant: string;
  readonly senderUser: string;
}
