import type { Event } from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { eventLine } from "./event-line.ts";
import { findRunId } from "../../setup/find-run.ts";

export interface LogOptions extends StoreOptions {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/**
 * Prints the events of a run, oldest first. With `follow`, also prints new events until the run ends or the person
 * interrupts.
 */
export function printLog(name: string, options: LogOptions, terminal: Terminal): Promise<ExitKind> {
  const { follow = false, json = false } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const stop = new AbortController();
    const forget = terminal.onInterrupt(() => stop.abort());
    const print = async (event: Event): Promise<void> => {
      const line = json ? JSON.stringify(event) : eventLine(event);
      if (line !== undefined) await terminal.out(line);
    };
    try {
      const { events } = store;
      for await (const event of follow ? events.tail(runId, { signal: stop.signal }) : events.read(runId))
        if ("seq" in event) await print(event);
    } finally {
      forget();
    }
    return "ok";
  });
}
