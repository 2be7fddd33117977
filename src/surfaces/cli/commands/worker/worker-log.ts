import {
  checkChoice,
  type Commit,
  type Event,
  type Fault,
  type JsonObject,
  type Lease,
  type Rest,
} from "../../../../kernel/index.ts";
import { extensionWords } from "../../terminal/policy-words.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import type { StoreObserver } from "../../setup/observed-store.ts";

type Level = "info" | "warn" | "error";
type Format = "text" | "json";

const formats: readonly Format[] = ["text", "json"];

/** Returns the value of `--log-format`. Default: `text` in a terminal, otherwise `json`. */
export function logFormat(option: string | undefined, { isWatched }: Pick<Terminal, "isWatched">): Format {
  checkChoice("reeve worker", "--log-format", option, formats);
  return (option as Format | undefined) ?? (isWatched ? "text" : "json");
}

/** Writes the actions of a worker to stdout, one line for each event. */
export class WorkerLog implements StoreObserver {
  readonly #out: Pick<Terminal, "out">;
  readonly #format: Format;

  constructor(out: Pick<Terminal, "out">, format: Format) {
    this.#out = out;
    this.#format = format;
  }

  /** Writes a line. `event` is a name in snake_case for programs, `message` is a text for people. */
  write(level: Level, event: string, message: string, facts: JsonObject = {}): void {
    const at = new Date().toISOString();
    const line =
      this.#format === "json"
        ? JSON.stringify({ at, level, event, message, ...facts })
        : `${at} ${level.padEnd(5)} ${printable(message)}${factsText(facts)}`;
    // A reader that is slower than the worker must not stop it.
    void this.#out.out(line);
  }

  error(fault: Fault): void {
    this.write("error", "error", fault.message, { code: fault.code });
  }

  /** Returns a terminal whose messages for people become lines of this log. */
  terminal(terminal: Terminal): Terminal {
    return {
      ...terminal,
      say: (line) => this.write("warn", "notice", line.replace(/^reeve: /u, "")),
    };
  }

  claimed({ runId, epoch, recoveries = 0 }: Lease): void {
    if (recoveries > 0)
      this.write("warn", "run_taken_over", "took over the run of a dead worker", {
        runId,
        epoch,
        recoveries,
      });
    else this.write("info", "run_claimed", "claimed a run", { runId, epoch });
  }

  released({ runId }: Lease, { kind }: Rest): void {
    this.write("info", "run_released", "released a run", { runId, rest: kind });
  }

  leaseLost({ runId, epoch }: Lease): void {
    this.write("warn", "lease_lost", "another worker owns the run", { runId, epoch });
  }

  registrationLost({ message, code }: Fault): void {
    this.write("warn", "heartbeat_lost", message, { code });
  }

  committed({ runId }: Lease, { events = [] }: Commit): void {
    for (const event of events) {
      const words = extensionWords(event);
      if (words !== undefined) this.write(levelOf(event), event.type, words, { runId });
      if (event.type !== "run_end") continue;
      const { status, costUsd, turns } = event.data;
      this.write("info", "run_ended", "a run ended", { runId, status, turns, costUsd });
    }
  }
}

function levelOf(event: Event): Level {
  if (event.type !== "extension_notice") return "warn";
  const { level } = event.data;
  return level === "warning" ? "warn" : level;
}

function factsText(facts: JsonObject): string {
  return Object.entries(facts)
    .map(
      ([name, value]) => ` ${name}=${printable(typeof value === "string" ? value : JSON.stringify(value))}`,
    )
    .join("");
}
