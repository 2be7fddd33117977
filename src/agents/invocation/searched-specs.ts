import {
  toolCallsOf,
  Transcript,
  type ChatMessage,
  type Tool,
  type ToolResultPart,
  type ToolSpec,
} from "../../kernel/index.ts";

/**
 * Maximum number of found tools in a request. If more were found, those found first are left out until they are
 * found again. With up to 63 other tools and the search tool, a request does not exceed the 128 tools that OpenAI
 * accepts.
 */
const maxFound = 64;

/**
 * The tool specifications of an invocation, of which a request contains only some: those without `foundBy`, and
 * after them those that were found in the conversation. The result depends only on the conversation, which is
 * journaled, so that a replay and the next invocation of a session send the same tools.
 */
export class SearchedSpecs {
  /** All specifications, without `foundBy`. */
  readonly all: readonly ToolSpec[];
  /** The tools that must be found by search. `undefined` if every tool is always sent (F1). */
  readonly #search: FoundNames | undefined;
  readonly #always: readonly ToolSpec[];
  readonly #byName: ReadonlyMap<string, ToolSpec>;
  #names: readonly string[] = [];
  #sent: readonly ToolSpec[];

  constructor(specs: readonly ToolSpec[]) {
    const searched = specs.filter(({ foundBy }) => foundBy !== undefined);
    this.all = searched.length === 0 ? specs : specs.map(withoutFoundBy);
    this.#search = searched.length === 0 ? undefined : new FoundNames(searched);
    this.#always = searched.length === 0 ? specs : specs.filter(({ foundBy }) => foundBy === undefined);
    this.#byName = new Map(searched.map((spec) => [spec.name, withoutFoundBy(spec)]));
    this.#sent = this.#always;
  }

  /**
   * Returns the specifications for a request. A found tool that the agent no longer has (`tools`) is left out. The same
   * array is returned until the tools change.
   */
  sent(conversation: Transcript, tools: () => readonly Tool[]): readonly ToolSpec[] {
    const found = this.#search?.in(conversation) ?? none;
    if (found.length === 0) return this.#always;
    const existing = new Set(tools().map(({ name }) => name));
    const names = found.filter((name) => existing.has(name));
    if (!isSame(names, this.#names)) {
      this.#names = names;
      this.#sent = [...this.#always, ...names.flatMap((name) => this.#byName.get(name) ?? [])];
    }
    return this.#sent;
  }
}

const none: readonly string[] = [];

function withoutFoundBy({ name, description, inputSchema }: ToolSpec): ToolSpec {
  return { name, description, inputSchema };
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}

/** Names of the tools that a conversation has found. F2: if a conversation grows, only its new messages are read. */
class FoundNames {
  /** Name of the search tool, by the name of the tool to be found. */
  readonly #searches: ReadonlyMap<string, string | undefined>;
  #read = Transcript.empty;
  #names: string[] = [];

  constructor(searched: readonly ToolSpec[]) {
    this.#searches = new Map(searched.map(({ name, foundBy }) => [name, foundBy]));
  }

  in(conversation: Transcript): readonly string[] {
    if (!continues(conversation, this.#read)) {
      this.#read = Transcript.empty;
      this.#names = [];
    }
    for (let index = this.#read.length; index < conversation.length; index++) {
      const message = conversation.at(index);
      if (message !== undefined) this.#readMessage(message);
    }
    this.#read = conversation;
    return this.#names;
  }

  #readMessage(message: ChatMessage): void {
    if (message.role === "assistant") {
      for (const { toolName } of toolCallsOf(message)) if (this.#searches.has(toolName)) this.#add(toolName);
    } else if (message.role === "tool") {
      for (const part of message.content)
        for (const name of foundIn(part)) if (this.#searches.get(name) === part.toolName) this.#add(name);
    }
  }

  #add(name: string): void {
    if (this.#names.includes(name)) return;
    this.#names = [...this.#names, name].slice(-maxFound);
  }
}

/** Names in the result of a search tool. */
function foundIn({ output, isError }: ToolResultPart): readonly string[] {
  if (isError || output.type !== "json") return none;
  const { value } = output;
  const found = typeof value === "object" && value !== null && "found" in value ? value["found"] : none;
  return Array.isArray(found) ? found.filter((name) => typeof name === "string") : none;
}

/** Whether a conversation starts with all messages that were read before. */
function continues(conversation: Transcript, read: Transcript): boolean {
  const { length } = read;
  if (length === 0) return true;
  return (
    conversation.length >= length &&
    conversation.at(0) === read.at(0) &&
    conversation.at(length - 1) === read.at(length - 1)
  );
}
