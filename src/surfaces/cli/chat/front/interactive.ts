import { Fault, type JsonValue, visibleLine } from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { reserveStdout } from "../../terminal/process-terminal.ts";
import type { RouteClient } from "../../../client/route-client.ts";
import type { Conversation } from "../client/conversation.ts";
import type { ChatServer } from "../client/local-server.ts";
import type { PlacedItem } from "../model/chat-item.ts";
import type { QuestionView } from "../../../view/run-view.ts";
import type { PiScreenOptions } from "../screen/pi-screen.ts";
import type { Picture, Screen } from "../screen/screen.ts";
import { themeFor, themeOf, type Theme } from "../screen/theme.ts";
import { blockOf } from "./chat-blocks.ts";
import { commandOf, runExtension } from "./chat-commands.ts";
import { Completer } from "./completions.ts";
import { editText, PromptHistory } from "./composer.ts";
import type { Desk, FrontOptions } from "./desk.ts";
import { DraftImages, pastedImage } from "./images.ts";
import { actionOf, readKeys, type KeyAction, type KeyMap } from "./keys.ts";
import { OpenedCalls } from "./opened-calls.ts";
import { OrgChart } from "./org-chart.ts";
import { askQuestion, goneWords } from "./questions.ts";
import { QueueEditor } from "./queue-editor.ts";
import { shellCommandOf, ShellCommands, type ShellCommand } from "./shell-commands.ts";
import { activityParts, statusLine } from "./status-line.ts";

/** Milliseconds between two pictures. */
const frameMs = 25;
/** Milliseconds between two drawings while only the elapsed time of an activity changes. */
const tickMs = 100;
/** Maximum number of items that are drawn. When there are more, the older half is left out. */
const mostDrawn = 400;
/** How long a second Ctrl-C leaves. */
const twiceMs = 2_000;

/** A chat on the whole terminal. */
export async function interactiveChat(options: FrontOptions): Promise<ExitKind> {
  const { piScreen } = await import("../screen/pi-screen.ts");
  const chat = new InteractiveChat(options, piScreen, await readKeys());
  return chat.run();
}

/** Sends an input to the conversation, either for the next step or for the time after the current answer. */
type Sending = (input: JsonValue) => Promise<void>;

class InteractiveChat implements Desk {
  readonly conversation: Conversation;
  readonly client: RouteClient;
  readonly server: ChatServer;
  readonly env: Desk["env"];
  readonly keys: KeyMap;
  readonly #options: FrontOptions;
  readonly #screen: Screen;
  readonly #completer: Completer;
  readonly #history = new PromptHistory();
  readonly #shell = new ShellCommands(process.cwd());
  #chart: OrgChart | undefined;
  readonly #left = Promise.withResolvers<void>();
  #theme: Theme;
  readonly #opened = new OpenedCalls();
  readonly #images = new DraftImages();
  readonly #queueEditor = new QueueEditor(this);
  #firstDrawn = 0;
  #frame: NodeJS.Timeout | undefined;
  #ticker: NodeJS.Timeout | undefined;
  /** Whether a list or a question is shown in place of the composer. */
  #isPicking = false;
  #asked: { readonly name: string; readonly withdraw: AbortController } | undefined;
  /** Names of questions that the person wants to answer later. */
  readonly #later = new Set<string>();
  #hint = "";
  #clearedAt = 0;
  #isOver = false;

  constructor(options: FrontOptions, makeScreen: (options: PiScreenOptions) => Screen, keys: KeyMap) {
    this.#options = options;
    this.keys = keys;
    this.#completer = new Completer(process.cwd());
    this.client = options.client;
    this.server = options.server;
    this.env = options.terminal.env;
    this.#theme = themeOf(themeFor(this.env, this.env["REEVE_THEME"]));
    this.conversation = options.converse(
      () => this.#changed(),
      (item) => this.#chart?.add(item),
    );
    this.conversation.onProblem((error) => this.#fail(error));
    this.#screen = makeScreen({
      theme: this.#theme,
      write: reserveStdout(),
      onSubmit: (text) => void this.#submit(text),
      onKey: (matches) => this.#key(matches),
      onPaste: (text) => pastedImage(text, process.cwd()),
      complete: (before, isAsked) => this.#completer.complete(before, isAsked),
      onGone: () => this.quit(),
    });
  }

  async run(): Promise<ExitKind> {
    const release = captureStray((line) => this.say(line, "hold"));
    const onSignal = (): void => this.quit();
    // A terminal that was closed: the run continues without it.
    process.on("SIGHUP", onSignal).on("SIGTERM", onSignal);
    this.server.local?.navigate({
      leave: this.quit,
      show: (sessionId) => this.#do(() => this.conversation.show(sessionId)),
    });
    this.#screen.start();
    this.#draw();
    try {
      const ready = [
        this.#options.begin(this.conversation),
        this.#loadHistory(),
        this.readCommands(),
      ] as const;
      const [begun, ...others] = await Promise.allSettled(ready);
      if (begun.status === "rejected") throw begun.reason;
      for (const each of others) if (each.status === "rejected") this.#fail(each.reason);
      await this.#left.promise;
    } finally {
      this.#isOver = true;
      clearTimeout(this.#frame);
      clearInterval(this.#ticker);
      this.#draw();
      this.#screen.stop();
      release();
      await this.#shell.close();
      process.off("SIGHUP", onSignal).off("SIGTERM", onSignal);
      // The edited text is in no queue. From here on a signal ends the process, also if the server does not answer.
      await this.#queueEditor.leave().catch((error: unknown) => {
        this.#options.terminal.say(`The edited text was not sent: ${visibleLine(Fault.from(error).message)}`);
      });
      const { sessionId, model } = this.conversation;
      this.conversation.close();
      await this.#images.remove();
      if (sessionId !== undefined) {
        const { terminal } = this.#options;
        if (model.isWorking) terminal.say("The run has not ended; it continues where its agent is executed.");
        terminal.say(`Continue with: reeve chat --session ${visibleLine(sessionId)}`);
      }
    }
    return "ok";
  }

  readonly say: Desk["say"] = (text, tone = "plain") => {
    this.conversation.model.note(text, tone);
    this.#changed();
  };

  readonly pick: Desk["pick"] = (options) => this.#inPlace(() => this.#screen.pick(options));

  readonly ask: Desk["ask"] = (title, options) => this.#inPlace(() => this.#screen.ask(title, options));

  readonly setDraft: Desk["setDraft"] = (text) => this.#screen.setDraft(text);

  readonly copy: Desk["copy"] = (text) => this.#screen.copy(text);

  readonly setTheme: Desk["setTheme"] = (name) => {
    this.#theme = themeOf(themeFor(this.env, name));
    this.#screen.setTheme(this.#theme);
    for (const text of this.#history.texts) this.#screen.remember(text);
    this.#changed();
  };

  readonly readCommands: Desk["readCommands"] = async () => {
    const params = { name: this.conversation.agent };
    const { commands } = await this.client.get("/api/agents/{name}/commands", { params });
    this.#completer.commands = commands;
  };

  readonly quit: Desk["quit"] = () => this.#left.resolve();

  async #inPlace<Value>(show: () => Promise<Value>): Promise<Value> {
    this.#isPicking = true;
    try {
      return await show();
    } finally {
      this.#isPicking = false;
      this.#changed();
    }
  }

  /** Executes the text at once if it is a command. Otherwise sends it with `send`. */
  async #submit(given: string, send: Sending = (input) => this.conversation.send(input)): Promise<void> {
    const text = given.trim();
    this.#hint = "";
    if (this.#queueEditor.isEditing) return this.#do(() => this.#queueEditor.putBack(given), given);
    if (text === "") {
      this.#later.clear();
      return this.#changed();
    }
    this.#remember(given);
    try {
      await this.#take(text, given, send);
    } catch (error) {
      this.#fail(error);
      if (this.#screen.draft === "") this.setDraft(given);
    }
    this.#changed();
  }

  async #take(text: string, given: string, send: Sending): Promise<void> {
    const found = commandOf(text);
    if (found !== undefined) return found.command.run(this, found.argument);
    const command = shellCommandOf(text);
    if (command !== undefined) return this.#runShell(command);
    if (await runExtension(this, text)) return;
    await this.#shell.send(given, send);
  }

  async #runShell(command: ShellCommand): Promise<void> {
    const running = this.#shell.run(command);
    this.#hint = "The command runs; Esc stops it";
    this.#changed();
    try {
      this.say(await running);
    } finally {
      // A refused command leaves the one that runs.
      if (!this.#shell.isRunning)
        this.#hint = command.isForModel ? "The output goes to the model with your next message" : "";
    }
  }

  async #loadHistory(): Promise<void> {
    await this.#history.load();
    for (const text of this.#history.texts) this.#screen.remember(text);
  }

  #remember(text: string): void {
    this.#screen.remember(text);
    this.#history.add(text).catch((error: unknown) => this.#fail(error));
  }

  async #search(): Promise<void> {
    const texts = [...new Set(this.#history.texts.toReversed())];
    const text = await this.pick({
      title: "Which earlier text? Type to filter.",
      filters: true,
      choices: texts.map((value) => ({ value, label: visibleLine(value.slice(0, 300)) })),
    });
    if (text !== undefined) this.setDraft(text);
  }

  async #edit(): Promise<void> {
    const editor = this.env["VISUAL"] ?? this.env["EDITOR"] ?? "vi";
    let text = this.#screen.draft;
    await this.#screen.lend(async () => {
      text = await editText(text, editor);
    });
    this.setDraft(text);
  }

  #key(matches: (key: string) => boolean): boolean {
    if (this.#chart !== undefined && !this.#isPicking) return this.#chart.key(matches);
    const action = this.#isPicking ? undefined : actionOf(this.keys, matches);
    if (action === undefined) return false;
    return this.#act(action);
  }

  #act(action: KeyAction): boolean {
    const { conversation } = this;
    switch (action) {
      case "stop":
        if (this.#shell.isRunning) {
          this.#shell.stop();
          return true;
        }
        if (this.#screen.isCompleting) return false;
        if (this.#queueEditor.isEditing) {
          this.#hint = "";
          this.#do(() => this.#queueEditor.leave());
          return true;
        }
        if (!conversation.model.isWorking) return false;
        this.#do(async () => this.#restore(await conversation.stop()));
        return true;
      case "queue": {
        const text = this.#screen.draft;
        if (this.#queueEditor.isEditing) {
          void this.#submit(text);
          return true;
        }
        if (text.trim() === "") return true;
        this.setDraft("");
        void this.#submit(text, (input) => conversation.followUp(input));
        return true;
      }
      case "takeBack":
        if (conversation.queue.length === 0 || this.#queueEditor.isEditing) return false;
        this.#do(async () => {
          const taken = await conversation.takeOut(conversation.queue);
          await this.#restore(taken.map(({ input }) => input));
        });
        return true;
      case "editQueue":
        if (conversation.queue.length === 0 || this.#queueEditor.isEditing) return false;
        this.#do(() => this.#editQueue());
        return true;
      case "open":
        this.#opened.toggleAll();
        this.#changed();
        return true;
      case "previousCall":
      case "nextCall":
        this.#opened.move(this.#drawnItems(), action === "nextCall" ? 1 : -1);
        this.#changed();
        return true;
      case "openCall":
        if (!this.#opened.toggleMarked(this.#drawnItems()))
          this.#hint = `${this.keys.previousCall.join(", ")} marks a call`;
        this.#changed();
        return true;
      case "chart":
        this.#showChart();
        return true;
      case "pasteImage":
        this.#do(async () => this.#screen.insert(await this.#images.take()));
        return true;
      case "search":
        this.#do(() => this.#search());
        return true;
      case "editor":
        this.#do(() => this.#edit());
        return true;
      case "clear":
        this.#clear();
        return true;
      case "leave":
        if (this.#screen.draft !== "") return false;
        this.quit();
        return true;
      case "suspend":
        this.#screen.suspend();
        return true;
    }
  }

  async #editQueue(): Promise<void> {
    await this.#queueEditor.choose(this.#screen.draft);
    if (this.#queueEditor.isEditing)
      this.#hint = "Enter puts the text back in its place; Esc leaves it as it was";
    this.#changed();
  }

  /** Shows the agents of the run in place of the conversation. */
  #showChart(): void {
    const { runId } = this.conversation.model;
    if (runId === undefined) return this.say("No run of this conversation was followed yet.");
    this.#chart = new OrgChart({
      desk: this,
      runId,
      view: () => this.conversation.model.view,
      liveText: (taskId) => this.conversation.model.liveText(taskId),
      onChange: () => this.#changed(),
      onLeave: () => {
        this.#chart = undefined;
      },
    });
    this.#changed();
  }

  #clear(): void {
    if (this.#screen.draft !== "") return this.setDraft("");
    if (Date.now() - this.#clearedAt < twiceMs) return this.quit();
    this.#clearedAt = Date.now();
    this.#hint = "Ctrl-C again leaves; a run in progress continues";
    this.#changed();
  }

  /** Puts inputs that were taken out of the queue before the text that the person has written in this time. */
  async #restore(inputs: readonly JsonValue[]): Promise<void> {
    if (inputs.length === 0) return;
    const texts = await Promise.all(inputs.map((input) => this.#images.draftOf(input)));
    const draft = this.#screen.draft;
    this.setDraft([...texts, ...(draft === "" ? [] : [draft])].join("\n"));
  }

  #do(act: () => Promise<void>, text?: string): void {
    act().catch((error: unknown) => {
      this.#fail(error);
      if (text !== undefined && this.#screen.draft === "") this.setDraft(text);
    });
  }

  #fail(error: unknown): void {
    this.say(Fault.from(error).message, "bad");
  }

  #changed(): void {
    this.#askNext();
    this.#frame ??= setTimeout(() => {
      this.#frame = undefined;
      this.#draw();
    }, frameMs);
  }

  /**
   * Asks the oldest open question that the person has not postponed. Withdraws the shown question if it was
   * answered elsewhere.
   */
  #askNext(): void {
    if (this.#isOver) return;
    const { model } = this.conversation;
    const open = model.questions;
    const asked = this.#asked;
    if (asked !== undefined) {
      if (!open.some((each) => model.nameOf(each) === asked.name)) asked.withdraw.abort();
      return;
    }
    const next = open.find((each) => !this.#later.has(model.nameOf(each)));
    if (next === undefined || this.#isPicking || this.#chart !== undefined) return;
    const name = model.nameOf(next);
    const withdraw = new AbortController();
    this.#asked = { name, withdraw };
    this.#do(() => this.#askOne(next, name, withdraw.signal));
  }

  async #askOne(question: QuestionView, name: string, signal: AbortSignal): Promise<void> {
    try {
      const decision = await askQuestion(this, question, signal);
      if (decision === undefined) {
        this.#later.add(name);
        if (signal.aborted) this.say(goneWords, "hold");
        else this.#hint = "The question stays open; Enter on an empty line asks it again";
      } else {
        // The event of the decision arrives later. It must not be asked meanwhile.
        this.#later.add(name);
        await this.conversation.decide(question, decision);
      }
    } finally {
      this.#asked = undefined;
      this.#changed();
    }
  }

  #draw(): void {
    const { model } = this.conversation;
    this.#screen.show(this.#chart?.picture(this.#theme, this.#screen) ?? this.#picture());
    const isTicking =
      !this.#isOver &&
      (this.conversation.lostAt !== undefined || (model.isWorking && model.questions.length === 0));
    if (isTicking) this.#ticker ??= setInterval(() => this.#draw(), tickMs);
    else {
      clearInterval(this.#ticker);
      this.#ticker = undefined;
    }
  }

  /** Returns the newest items. Older items are not drawn. */
  #drawnItems(): readonly PlacedItem[] {
    const { items } = this.conversation.model;
    if (items.length < this.#firstDrawn) this.#firstDrawn = 0;
    if (items.length - this.#firstDrawn > mostDrawn) this.#firstDrawn = items.length - mostDrawn / 2;
    return items.slice(this.#firstDrawn);
  }

  #picture(): Picture {
    const theme = this.#theme;
    const drawn = this.#drawnItems();
    const marked = this.#opened.words(drawn);
    const head =
      this.#firstDrawn === 0 && !this.conversation.isCut
        ? `reeve chat with ${visibleLine(this.conversation.agent)}. /help lists the commands.`
        : "Earlier parts are not drawn; reeve sessions show prints them.";
    return {
      blocks: [
        {
          id: -1,
          version: `${head} ${theme.name}`,
          parts: () => [{ kind: "line", text: theme.paint("dim", head) }],
        },
        ...drawn.map((item) => blockOf(item, { theme, showsImages: true, ...this.#opened.look(item.id) })),
      ],
      above: this.#isOver
        ? []
        : [{ kind: "text", text: "" }, ...activityParts(this.conversation, theme, Date.now())],
      below: this.#isOver
        ? []
        : [
            theme.paint("dim", statusLine(this.conversation, this.#options.model)),
            ...(marked === undefined ? [] : [theme.paint("accent", `› ${marked}`)]),
            ...(this.#hint === "" ? [] : [theme.paint("hold", this.#hint)]),
          ],
    };
  }
}

/**
 * Redirects the output of other parts of the process, such as errors of extensions, to the chat. Otherwise this
 * output would overwrite the terminal. The returned function ends the redirection.
 */
export function captureStray(onLine: (line: string) => void): () => void {
  const { stderr } = process;
  const write = stderr.write.bind(stderr);
  let rest = "";
  const capture = (chunk: string | Uint8Array): boolean => {
    const lines = (rest + (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"))).split(
      "\n",
    );
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onLine(line);
    return true;
  };
  stderr.write = capture;
  process.stdout.write = capture;
  return () => {
    stderr.write = write;
    process.stdout.write = write;
    if (rest !== "") write(`${rest}\n`);
  };
}
