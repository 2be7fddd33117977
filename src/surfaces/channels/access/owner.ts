import { Fault, nameProblem } from "../../../kernel/index.ts";

/** The user, and the tenant if there is one, in whose name a sender's runs are started. */
export interface Owner {
  readonly userId: string;
  /** `null`: the runs belong to no tenant. */
  readonly tenantId: string | null;
}

/** Whether two senders act for the same user. */
export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.userId === other.userId && one.tenantId === other.tenantId;
}

/** Returns the owner for a sender. Default of the user: `CHANNEL:SENDER`. Throws `invalid_argument`. */
export function ownerOf(
  channel: string,
  senderId: string,
  { userId = `${channel}:${senderId}`, tenantId = null }: Partial<Owner>,
): Owner {
  for (const [field, value] of [
    ["user", userId],
    ["tenant", tenantId],
  ] as const) {
    const problem = value === null ? undefined : nameProblem(value);
    if (problem !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid ${field} of sender ${senderId} in channel ${channel}: ${problem}`,
      );
  }
  return { userId, tenantId };
}
