import { agentIdOf, Fault, type Delivery } from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface DeadLettersOptions extends StoreOptions {
  readonly json?: boolean;
}

/** Prints the dead letters: messages whose delivery failed too often. */
export function printDeadLetters(
  agent: string | undefined,
  { json = false, ...options }: DeadLettersOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const agentId = agent === undefined ? undefined : agentIdOf(agent);
  return withStore(options, terminal, async ({ inbox }): Promise<ExitKind> => {
    const letters = await inbox.deadLetters(agentId);
    for (const letter of letters) await terminal.out(json ? JSON.stringify(letter) : textLine(letter));
    terminal.say(`Dead letters: ${letters.length}`);
    return "ok";
  });
}

/**
 * Redelivers dead letters to the workers that host the agent. Throws before the first redelivery if one of the
 * given messages is not a dead letter.
 */
export function redeliverLetters(
  agent: string,
  messageIds: readonly string[],
  options: StoreOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const agentId = agentIdOf(agent);
  return withStore(options, terminal, async ({ inbox }): Promise<ExitKind> => {
    const dead = new Set((await inbox.deadLetters(agentId)).map(({ message }) => message.id));
    const unknown = messageIds.find((each) => !dead.has(each));
    if (unknown !== undefined)
      throw new Fault("not_found", `dead letter ${printable(unknown)} of agent ${agentId} not found`);
    const count = await inbox.redeliver(agentId, messageIds.length === 0 ? undefined : messageIds);
    await terminal.out(String(count));
    if (count > 0) terminal.say("The messages are delivered again as new ones where the agent is hosted.");
    return "ok";
  });
}

function textLine({ message, deliveries, runId }: Delivery): string {
  const { id, from, to, body } = message;
  return [
    printable(to),
    printable(id),
    `tried ${deliveries}x`,
    `from ${printable(from ?? "outside")}`,
    runId ?? "-",
    printable(JSON.stringify(body)),
  ].join("  ");
}
