import { Fault, type Runtime } from "../../../kernel/index.ts";
import type { DemoDesk } from "./demo-desk.ts";

const person = { userId: "ada", streaming: true } as const;

/**
 * Starts what the page shows beside the run of the company: a finished run, one that has used up its allowance, a
 * schedule, and a conversation with two branches, one of which waits for a person. Resolves when all of them rest.
 */
export async function playScene(runtime: Runtime, { support, bookkeeper, upkeep }: DemoDesk): Promise<void> {
  await runtime.schedules.create({
    name: "weekly-report",
    agent: bookkeeper,
    input: "Report on the orders of the week",
    cron: "0 9 * * 1",
    userId: person.userId,
  });
  const report = await runtime.submit(bookkeeper, "Report on the orders of the week", person);
  const search = await runtime.submit(upkeep, "How long is our checklist?", person);
  await Promise.all([report.result(), search.result(), converse(runtime, support)]);
}

async function converse(runtime: Runtime, support: DemoDesk["support"]): Promise<void> {
  const sessionId = "order-8841";
  const ask = (text: string) => runtime.submit(support, text, { ...person, sessionId });
  await (await ask("What is the state of order 8841?")).result();
  await runtime.sessions.name(sessionId, "Order 8841");
  const answer = (await runtime.sessions.path(sessionId)).at(-1);
  if (answer === undefined) throw new Fault("internal", `session ${sessionId} has no answer`);
  await runtime.sessions.label(sessionId, answer.id, "one item arrived damaged");
  await (await ask("Which orders are on their way?")).result();
  await runtime.sessions.move(sessionId, answer.id);
  await (await ask("Which items arrived damaged?")).result();
  await (await ask("Please refund order 8841.")).untilPersonIsNeeded();
}
