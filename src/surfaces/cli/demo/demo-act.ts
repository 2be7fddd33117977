import { join } from "node:path";
import { openRuntime } from "../../../open-runtime.ts";
import { formatRunId, type PriceTable } from "../../../kernel/index.ts";
import type { ExitKind } from "../exit-code.ts";
import { exitKindOfRun } from "../exit-code.ts";
import type { Terminal } from "../terminal.ts";
import { demoCompany, demoTask } from "./demo-company.ts";
import { ProviderBook } from "./demo-model.ts";

export const demoRun = formatRunId("demo");

/** The prices of the demo: 3 dollars per million input tokens, 15 per million output tokens. */
const prices: PriceTable = { find: () => ({ inputUsd: 3e-6, outputUsd: 15e-6 }) };

export function demoStore(folder: string): `sqlite:${string}` {
  return `sqlite:${join(folder, "reeve.db")}`;
}

export function demoBook(folder: string): ProviderBook {
  return new ProviderBook(join(folder, "provider-book.jsonl"));
}

/**
 * Executes the demo's run in a process that may be killed: the first process starts it, the next one resumes it. Every
 * event is a line on stdout. Submitting again with the same id has no effect.
 */
export async function demoAct(
  { folder, root, paceMs }: { readonly folder: string; readonly root: string; readonly paceMs: number },
  terminal: Terminal,
): Promise<ExitKind> {
  const runtime = await openRuntime({ store: demoStore(folder), prices });
  const lead = demoCompany({ book: demoBook(folder), root, paceMs });
  const run = await lead.submit(demoTask, { runtime, runId: demoRun });
  for await (const event of run.events()) if ("seq" in event) await terminal.out(JSON.stringify(event));
  const { status } = await run.result();
  await runtime.close();
  return exitKindOfRun(status);
}
