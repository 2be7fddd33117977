import { Fault, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { ownerOf, type Owner } from "./owner.ts";

/**
 * A sender that may write without a pairing. It is an id, or an id with the user and the tenant of the sender's
 * runs.
 */
export type AllowedSender =
  | string
  | {
      /** Id of the sender on the platform. Compared exactly. */
      readonly sender: string;
      /** Default: `CHANNEL:SENDER`. */
      readonly user?: string;
      /** If absent, the runs belong to no tenant. */
      readonly tenant?: string;
    };

const senderTable = optionTable({
  sender: is.text({ required: true }),
  user: is.text(),
  tenant: is.text(),
} satisfies OptionKinds<Exclude<AllowedSender, string>>);

/**
 * Returns, by the id of each sender of an allow list, the user and the tenant to whom the sender's runs belong. Throws
 * `invalid_argument` for a pattern or an invalid id.
 */
export function allowList(
  channel: string,
  allow: readonly AllowedSender[],
  problemOf: (senderId: string) => string | undefined = () => undefined,
): ReadonlyMap<string, Owner> {
  const owners = new Map<string, Owner>();
  for (const each of allow) {
    const { sender, user, tenant } =
      typeof each === "string"
        ? { sender: each, user: undefined, tenant: undefined }
        : senderTable.read(`a sender in the allow list of channel ${channel}`, each);
    const problem = sender === "" || /[*?]/u.test(sender) ? "expected an exact id" : problemOf(sender);
    if (problem !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid sender ${JSON.stringify(sender)} in the allow list of channel ${channel}: ${problem}`,
      );
    owners.set(
      sender,
      ownerOf(channel, sender, {
        ...(user !== undefined && { userId: user }),
        ...(tenant !== undefined && { tenantId: tenant }),
      }),
    );
  }
  return owners;
}
