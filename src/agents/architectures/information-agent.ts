import {
  Fault,
  jsonText,
  parseTopicId,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type InboxMode,
  type JsonValue,
  type TopicId,
} from "../../kernel/index.ts";
import { askRole, architectureEvent } from "../context/role-call.ts";

/** One message that an information agent received. */
export interface InformationItem {
  /** The sender or publisher; `null` for a caller outside the runtime. */
  readonly from: string | null;
  readonly body: JsonValue;
}

export interface InformationOptions {
  /** The topics that the agent follows, as `type/source`. */
  readonly sources: readonly string[];
  /** The topic to which the agent publishes its result. */
  readonly topic: string;
  /**
   * Combines the received items. Default: a summary by the agent's model. `null` and an empty text are not published.
   */
  readonly aggregate?: (items: readonly InformationItem[]) => JsonValue | Promise<JsonValue>;
}

const defaultInstructions = "Summarise the messages in a few sentences. Include everything important.";

/** The input with which the agent starts to follow its sources. */
export const startInput = "start";

/**
 * Creates the options of an agent that follows topics, combines the messages that arrive and publishes the result.
 * Messages that arrive while it runs are handled together in its next activation.
 */
export function informationAgent<Options extends InformationOptions>(
  options: Options,
): Omit<Options, keyof InformationOptions> & {
  readonly architecture: Architecture;
  readonly inbox: InboxMode;
} {
  const { sources, topic, aggregate, ...rest } = options;
  if (sources.length === 0)
    throw new Fault(
      "invalid_argument",
      "invalid sources: the list is empty; an InformationAgent needs at least one topic to follow",
    );
  const followed = [...new Set(sources)].map(topicOf);
  const published = topicOf(topic);
  if (followed.includes(published))
    throw new Fault(
      "invalid_argument",
      `invalid topic ${topic}: the agent also follows it and would receive its own messages; publish to another topic`,
    );
  return {
    instructions: defaultInstructions,
    ...rest,
    inbox: "together",
    architecture: new Information(followed, published, aggregate),
  };
}

function topicOf(text: string): TopicId {
  parseTopicId(text);
  return text as TopicId;
}

class Information implements Architecture {
  readonly name = "information";
  readonly requiresModel: boolean;
  readonly #sources: readonly TopicId[];
  readonly #topic: TopicId;
  readonly #aggregate: InformationOptions["aggregate"];

  constructor(sources: readonly TopicId[], topic: TopicId, aggregate: InformationOptions["aggregate"]) {
    this.#sources = sources;
    this.#topic = topic;
    this.#aggregate = aggregate;
    this.requiresModel = aggregate === undefined;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { ctx } = deps;
    // A null input means that inbox messages started the task. Otherwise a caller invoked the agent, possibly with the
    // start input.
    const isMail = ctx.input === null;
    if (!isMail) {
      for (const topic of this.#sources) await ctx.follow(topic);
      yield architectureEvent(this.name, "followed", { topics: this.#sources });
      if (prompt === startInput) {
        session.output = `follows ${this.#sources.join(", ")}`;
        return;
      }
    }
    const items = isMail ? (JSON.parse(prompt) as InformationItem[]) : [{ from: null, body: prompt }];
    const made = await this.#made(session, deps, items);
    session.output = jsonText(made);
    if (session.output === "") return;
    await ctx.emit(this.#topic, made);
    yield architectureEvent(this.name, "published", { topic: this.#topic, items: items.length });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }

  #made(session: AgentSession, deps: Dependencies, items: readonly InformationItem[]): Promise<JsonValue> {
    const aggregate = this.#aggregate;
    if (aggregate !== undefined) return deps.ctx.step("aggregate", async () => aggregate(items));
    const list = items.map(({ from, body }) => `- ${from ?? "outside"}: ${jsonText(body)}`);
    return askRole(session, deps, {
      role: "summarizer",
      instructions: session.instructions,
      prompt: `Messages:\n${list.join("\n")}`,
    });
  }
}
