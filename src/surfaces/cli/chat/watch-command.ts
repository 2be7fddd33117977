import { Fault, visibleLine, type Event } from "../../../kernel/index.ts";
import { addressOf } from "../../view/request-address.ts";
import { RunFold } from "../../view/run-fold.ts";
import { statusWords } from "../../view/status-words.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { dollars, duration } from "../terminal/format.ts";
import { reserveStdout } from "../terminal/process-terminal.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Result } from "../../server/route-values.ts";
import { ChatClient } from "./client/chat-client.ts";
import { openStoreServer, remoteServer } from "./client/local-server.ts";
import type { Desk } from "./front/desk.ts";
import { OrgChart } from "./front/org-chart.ts";
import type { PiScreenOptions } from "./screen/pi-screen.ts";
import type { Picture, Screen } from "./screen/screen.ts";
import { themeFor, themeOf, type Theme } from "./screen/theme.ts";

export interface WatchOptions {
  readonly store: string;
  readonly url?: string;
}

type Run = Result<"GET", "/api/runs">["runs"][number];

const frameMs = 50;
/** How long changes of runs are collected before the list is read again. */
const settleMs = 300;

/** Shows the runs of a store, or the agents of one run, until the person leaves. */
export async function watchCommand(
  runId: string | undefined,
  options: WatchOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  if (!terminal.canAsk || !terminal.isWatched || terminal.env["TERM"] === "dumb")
    throw new Fault(
      "invalid_argument",
      "reeve watch needs a terminal on which it can draw; reeve tree RUN and reeve ps print the same once",
    );
  const server =
    options.url === undefined
      ? await openStoreServer(options.store, terminal)
      : remoteServer(options.url, terminal.env["REEVE_TOKEN"]);
  try {
    const client = new ChatClient(server.place);
    if (runId !== undefined) await client.get("/api/runs/{runId}", { params: { runId } });
    const { piScreen } = await import("./screen/pi-screen.ts");
    return await new Watch(client, terminal, piScreen).run(runId);
  } finally {
    await server.close();
  }
}

/** One run that is watched. */
interface WatchedRun {
  readonly fold: RunFold;
  readonly chart: OrgChart;
  readonly stop: AbortController;
}

class Watch {
  readonly #client: ChatClient;
  readonly #screen: Screen;
  readonly #theme: Theme;
  readonly #left = Promise.withResolvers<void>();
  readonly #stop = new AbortController();
  #runs: readonly Run[] = [];
  #waiting = 0;
  #selected = 0;
  #isSingle = false;
  #isPicking = false;
  #watched: WatchedRun | undefined;
  #said = "";
  #frame: NodeJS.Timeout | undefined;
  #settle: NodeJS.Timeout | undefined;

  constructor(client: ChatClient, { env }: Terminal, makeScreen: (options: PiScreenOptions) => Screen) {
    this.#client = client;
    this.#theme = themeOf(themeFor(env, env["REEVE_THEME"]));
    this.#screen = makeScreen({
      theme: this.#theme,
      write: reserveStdout(),
      onSubmit: () => undefined,
      onKey: (matches) => this.#key(matches),
      complete: async () => null,
      onGone: () => this.#left.resolve(),
    });
  }

  async run(runId: string | undefined): Promise<ExitKind> {
    const leave = (): void => this.#left.resolve();
    process.on("SIGHUP", leave).on("SIGTERM", leave);
    this.#screen.start();
    this.#isSingle = runId !== undefined;
    if (runId === undefined) this.#followStore();
    else this.#open(runId);
    this.#draw();
    await this.#left.promise;
    process.off("SIGHUP", leave).off("SIGTERM", leave);
    clearTimeout(this.#frame);
    clearTimeout(this.#settle);
    this.#stop.abort();
    this.#watched?.stop.abort();
    this.#screen.stop();
    return "ok";
  }

  #key(matches: (key: string) => boolean): boolean {
    if (this.#isPicking) return false;
    if (matches("ctrl+c") || matches("ctrl+d")) this.#left.resolve();
    else if (matches("ctrl+z")) this.#screen.suspend();
    else if (this.#watched !== undefined) this.#watched.chart.key(matches);
    else if (matches("q") || matches("escape")) this.#left.resolve();
    else if (matches("enter")) {
      const run = this.#runs[this.#selected];
      if (run !== undefined) this.#open(run.runId);
    } else {
      const by = matches("up") || matches("k") ? -1 : matches("down") || matches("j") ? 1 : 0;
      this.#selected = Math.max(0, Math.min(this.#runs.length - 1, this.#selected + by));
    }
    this.#changed();
    return true;
  }

  #open(runId: string): void {
    const fold = new RunFold();
    const stop = new AbortController();
    const chart = new OrgChart({
      desk: this.#desk(),
      runId,
      view: () => (fold.seq < 0 ? undefined : fold.view()),
      onChange: () => this.#changed(),
      onLeave: () => this.#leaveRun(),
    });
    this.#watched = { fold, chart, stop };
    let isOver = false;
    this.#client
      .follow({
        path: () => addressOf("/api/runs/{runId}/stream", { runId }, { from: fold.seq + 1, deltas: false }),
        signal: stop.signal,
        isOver: () => isOver,
        onLost: () => this.#say("The server does not answer; trying again."),
        onOpen: () => this.#say(""),
        onMessage: ({ name, data }) => {
          if (name === "end") isOver = true;
          else fold.add(data as Event);
          this.#changed();
        },
      })
      .catch((error: unknown) => this.#say(Fault.from(error).message));
  }

  #leaveRun(): void {
    if (this.#isSingle) return this.#left.resolve();
    this.#watched?.stop.abort();
    this.#watched = undefined;
    this.#changed();
  }

  #desk(): Pick<Desk, "client" | "pick" | "ask" | "say"> {
    const inPlace = async <Value>(show: () => Promise<Value>): Promise<Value> => {
      this.#isPicking = true;
      try {
        return await show();
      } finally {
        this.#isPicking = false;
        this.#changed();
      }
    };
    return {
      client: this.#client,
      pick: (options) => inPlace(() => this.#screen.pick(options)),
      ask: (title, initial) => inPlace(() => this.#screen.ask(title, initial)),
      say: (text) => this.#say(text),
    };
  }

  #followStore(): void {
    this.#client
      .follow({
        path: () => "/api/stream",
        signal: this.#stop.signal,
        isOver: () => false,
        onLost: () => this.#say("The server does not answer; trying again."),
        onOpen: () => this.#say(""),
        onMessage: () => {
          this.#settle ??= setTimeout(() => {
            this.#settle = undefined;
            this.#readStore().catch((error: unknown) => this.#say(Fault.from(error).message));
          }, settleMs);
        },
      })
      .catch((error: unknown) => this.#say(Fault.from(error).message));
  }

  async #readStore(): Promise<void> {
    const [{ runs }, { waiting }] = await Promise.all([
      this.#client.get("/api/runs", { query: { limit: 100 } }),
      this.#client.get("/api/inbox", { query: { limit: 1 } }),
    ]);
    const chosen = this.#runs[this.#selected]?.runId;
    this.#runs = runs;
    this.#waiting = waiting;
    const at = runs.findIndex((run) => run.runId === chosen);
    this.#selected = Math.max(0, at);
    this.#changed();
  }

  #say(text: string): void {
    this.#said = visibleLine(text);
    this.#changed();
  }

  #changed(): void {
    this.#frame ??= setTimeout(() => {
      this.#frame = undefined;
      this.#draw();
    }, frameMs);
  }

  #draw(): void {
    this.#screen.show(this.#watched?.chart.picture(this.#theme) ?? this.#storePicture());
  }

  #storePicture(): Picture {
    const { paint } = this.#theme;
    const room = Math.max(3, this.#screen.rows - 5);
    const first = Math.max(0, Math.min(this.#selected - Math.floor(room / 2), this.#runs.length - room));
    const now = Date.now();
    const total = this.#runs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
    const live = this.#runs.filter(({ endedAt }) => endedAt === null).length;
    return {
      hidesComposer: true,
      blocks: [],
      above: [
        {
          kind: "line",
          text: `${paint("strong", "Runs")} ${paint("dim", `${live} at work · ${this.#waiting} questions wait for you · ${dollars(total)} of the newest ${this.#runs.length}`)}`,
        },
        ...this.#runs.slice(first, first + room).map((run, at) => {
          const isSelected = first + at === this.#selected;
          const { runId, agentId, title, status, waitsFor, costUsd, createdAt } = run;
          const waits = waitsFor.length === 0 ? "" : ` for ${waitsFor.join(", ")}`;
          const about = `${statusWords[status]}${waits} · ${dollars(costUsd)} · ${duration(now - createdAt)} ago`;
          return {
            kind: "line",
            text: `${isSelected ? paint("accent", "→") : " "} ${paint(isSelected ? "strong" : "user", visibleLine(agentId))} ${paint("dim", runId)} ${paint(status === "waiting" ? "hold" : "dim", about)} ${visibleLine(title ?? "")}`,
          } as const;
        }),
      ],
      below: [
        paint("dim", "↑↓ choose · Enter agents of the run · q leaves"),
        ...(this.#said === "" ? [] : [paint("hold", this.#said)]),
      ],
    };
  }
}
