import { Fault } from "../../../../kernel/index.ts";
import { storedPairings, type Pairing, type PendingPairing } from "../../../server/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns } from "../../terminal/format.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface ApprovePairingOptions extends StoreOptions {
  readonly user?: string;
  readonly tenant?: string;
}

export interface ListPairingsOptions extends StoreOptions {
  readonly json?: boolean;
}

/** Admits the sender to whom a pairing code was sent, and prints the sender. */
export async function approvePairing(
  code: string,
  { user: userId, tenant: tenantId, store: address }: ApprovePairingOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const store = await openOwnStore(address);
  try {
    const pairing = await storedPairings(store.records).approve(code, {
      ...(userId !== undefined && { userId }),
      ...(tenantId !== undefined && { tenantId }),
    });
    await terminal.out(printable(nameOf(pairing)));
    const who = pairing.senderName === null ? "" : ` (${pairing.senderName})`;
    terminal.say(printable(`The sender${who} is admitted. Its runs belong to ${ownerOf(pairing)}.`));
  } finally {
    await store.close();
  }
  return "ok";
}

/** Prints the admitted senders, then the senders that wait for admission. */
export function listPairings(
  { json = false, ...options }: ListPairingsOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async ({ records }): Promise<ExitKind> => {
    const pairings = storedPairings(records);
    const [admitted, pending] = await Promise.all([pairings.list(), pairings.pending()]);
    const lines = json
      ? [...admitted, ...pending].map((each) => JSON.stringify(each))
      : columns([...admitted.map(row), ...pending.map(pendingRow)]);
    for (const line of lines) await terminal.out(line);
    if (!json) terminal.say(`Admitted: ${admitted.length}, waiting: ${pending.length}`);
    return "ok";
  });
}

/** Revokes pairings. From then on, channels refuse these senders. */
export function revokePairings(
  senders: readonly string[],
  options: StoreOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async ({ records }): Promise<ExitKind> => {
    const pairings = storedPairings(records);
    const known = new Map((await pairings.list()).map((each) => [nameOf(each), each]));
    const unknown = senders.find((sender) => !known.has(sender));
    if (unknown !== undefined)
      throw new Fault(
        "not_found",
        `sender ${printable(unknown)} not found; reeve pair list shows the senders`,
      );
    for (const sender of senders) {
      const { channel = "", senderId = "" } = known.get(sender) ?? {};
      await pairings.revoke(channel, senderId);
      await terminal.out(printable(sender));
    }
    return "ok";
  });
}

function nameOf({ channel, senderId }: Pick<Pairing, "channel" | "senderId">): string {
  return `${channel}:${senderId}`;
}

function ownerOf({ userId, tenantId }: Pairing): string {
  return `user ${userId}${tenantId === null ? "" : ` of tenant ${tenantId}`}`;
}

function row(pairing: Pairing): string[] {
  const since = new Date(pairing.pairedAt).toISOString();
  return [nameOf(pairing), ownerOf(pairing), pairing.senderName ?? "", `since ${since}`].map(printable);
}

function pendingRow(pending: PendingPairing): string[] {
  const until = new Date(pending.expiresAt).toISOString();
  return [nameOf(pending), "waits for approval", pending.senderName ?? "", `until ${until}`].map(printable);
}
