import { formatAgentId, type HostedAgent } from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";

/** A message that a person sends. All ids consist of digits, so that they are valid on every platform. */
export interface SaidMessage {
  readonly senderId: string;
  readonly conversationId: string;
  readonly messageId: string;
  readonly text: string;
}

/** A message from the channel that the platform has accepted. */
export interface HeardMessage {
  readonly conversationId: string;
  readonly text: string;
  readonly choices: readonly { readonly label: string; readonly data: string }[];
}

/** A channel, connected to a platform that the test simulates. */
export interface ChannelWorld {
  /** Delivers a message to the channel, as the platform would do. Resolves when the channel has accepted it. */
  say(message: SaidMessage): Promise<void>;
  /**
   * Answers a question by choosing one of its answers, in the name of a sender. Returns the text that is shown to
   * the sender.
   */
  choose(choice: Omit<SaidMessage, "messageId" | "text"> & { readonly data: string }): Promise<string>;
  /** Resolves with all messages that the platform has accepted, in their order, when there are at least `count`. */
  heard(count: number): Promise<readonly HeardMessage[]>;
  /** Approves the pairing code that a text contains, for a user. */
  pair(text: string, userId: string): Promise<void>;
  revoke(senderId: string): Promise<void>;
  /** Closes the channel and its runtime, and opens both again with the same store. */
  restart(): Promise<void>;
}

/**
 * The functions that `channelContract` receives: those of a test runner, and one that opens a channel with a
 * simulated platform.
 */
export interface ChannelHarness extends Pick<ContractHarness, "test" | "expect"> {
  /**
   * Opens the channel on a new store, with the agent of `channelAgent()`. Its allow list contains the sender `1`
   * with the user `ann`, and the sender `2` with the user `bob`; all other senders can be paired.
   */
  readonly open: () => Promise<ChannelWorld>;
}

/**
 * Returns the agent of the channel contract. It answers `echo: TEXT`; `whoami` returns the user; `ask TEXT` asks
 * for a confirmation; `name` asks for a text; `hold` waits until it is cancelled.
 */
export function channelAgent(): HostedAgent {
  return {
    id: formatAgentId({ name: "echo" }),
    async run(ctx) {
      const text = typeof ctx.input === "string" ? ctx.input : JSON.stringify(ctx.input);
      const [word] = text.split(" ");
      const question = { toolName: "echo", callId: "1", reason: text } as const;
      switch (word) {
        case "whoami":
          return ctx.facts.userId;
        case "ask": {
          const input = { message: text };
          const { decision } = await ctx.approval({ ...question, kind: "confirm", input });
          return `${decision}: ${text}`;
        }
        case "name": {
          const answer = await ctx.approval({ ...question, input: { question: "Your name?" } });
          return answer.decision === "approved" ? `Hello ${JSON.stringify(answer.input)}` : "Hello stranger";
        }
        case "hold":
          await ctx.waitForSignal("released");
          return "released";
        default:
          return `echo: ${text}`;
      }
    },
  };
}

const ann = { senderId: "1", conversationId: "1" } as const;
const bob = { senderId: "2", conversationId: "2" } as const;
const eve = { senderId: "3", conversationId: "3" } as const;

/** Tests of the rules that every channel must keep together with its host. */
export function channelContract({ test, expect, open }: ChannelHarness): void {
  const texts = async (world: ChannelWorld, count: number): Promise<readonly string[]> =>
    (await world.heard(count)).map(({ text }) => text);

  test("N1: a message that arrives again, also after a restart, is answered once", async () => {
    const world = await open();
    const first = { ...ann, messageId: "1", text: "one" };
    await world.say(first);
    await world.say(first);
    expect(await texts(world, 1)).toEqual(["echo: one"]);
    await world.restart();
    await world.say(first);
    await world.say({ ...ann, messageId: "2", text: "two" });
    expect(await texts(world, 2)).toEqual(["echo: one", "echo: two"]);
  });

  test("N1: messages with the same id in two conversations are two messages", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "one" });
    await world.heard(1);
    await world.say({ ...bob, messageId: "1", text: "two" });
    expect(await texts(world, 2)).toEqual(["echo: one", "echo: two"]);
  });

  test("N2: messages that arrive while the agent answers an earlier message wait and are answered in order", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "ask first" });
    const [question] = await world.heard(1);
    await world.say({ ...ann, messageId: "3", text: "three" });
    await world.say({ ...ann, messageId: "2", text: "two" });
    await world.restart();
    await world.choose({ ...ann, data: question?.choices[0]?.data ?? "" });
    expect((await texts(world, 4)).slice(1)).toEqual(["approved: ask first", "echo: two", "echo: three"]);
  });

  test("N3: a run that a sender starts belongs to the user whom the allow list names for the sender", async () => {
    const world = await open();
    await world.say({ ...bob, messageId: "1", text: "whoami" });
    expect(await texts(world, 1)).toEqual(["bob"]);
  });

  test("N3: an unknown sender gets a pairing code, is answered once approved, and no longer after the pairing is revoked", async () => {
    const world = await open();
    await world.say({ ...eve, messageId: "1", text: "whoami" });
    const [offer] = await world.heard(1);
    expect(/reeve pair approve [A-Z2-9]{4}-[A-Z2-9]{4}/u.test(offer?.text ?? "")).toBe(true);
    await world.pair(offer?.text ?? "", "eva");
    await world.say({ ...eve, messageId: "2", text: "whoami" });
    expect((await texts(world, 2))[1]).toBe("eva");
    await world.say({ ...eve, messageId: "3", text: "ask" });
    const question = (await world.heard(3))[2];
    await world.revoke("3");
    const told = await world.choose({ ...eve, data: question?.choices[0]?.data ?? "" });
    expect(told).toBe("You may not answer this question.");
    await world.say({ ...eve, messageId: "4", text: "whoami" });
    expect(/reeve pair approve/u.test((await texts(world, 4))[3] ?? "")).toBe(true);
  });

  test("N4: only the user of the run answers its question, once, in the conversation of the run", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "ask me" });
    const [question] = await world.heard(1);
    const yes = question?.choices[0]?.data ?? "";
    const no = question?.choices[1]?.data ?? "";
    expect(await world.choose({ ...ann, senderId: "2", data: yes })).toBe(
      "You may not answer this question.",
    );
    expect(await world.choose({ ...ann, senderId: "9", data: yes })).toBe(
      "You may not answer this question.",
    );
    for (const data of [yes.slice(0, -1), `${yes}x`, `x${yes.slice(1)}`, "a:", yes.replace("a:", "7:")])
      expect(await world.choose({ ...ann, data })).toBe("This question is no longer open.");
    expect(await world.choose({ ...ann, conversationId: "2", data: yes })).toBe(
      "This question is no longer open.",
    );
    expect(await world.choose({ ...ann, data: no })).toBe("Denied.");
    expect(await world.choose({ ...ann, data: yes })).toBe("This was already answered: denied by ann.");
    expect((await texts(world, 2))[1]).toBe("denied: ask me");
    expect(await world.choose({ ...ann, data: yes })).toBe("This was already answered: denied by ann.");
  });

  test("N4: a question that takes a text is answered by the person's next message", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "name" });
    await world.heard(1);
    await world.say({ ...ann, messageId: "2", text: "Ann" });
    expect((await texts(world, 2))[1]).toBe('Hello "Ann"');
  });

  test("N5: a question that waits for a person can still be answered after a restart", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "ask again" });
    const [question] = await world.heard(1);
    await world.restart();
    await world.choose({ ...ann, data: question?.choices[0]?.data ?? "" });
    expect(await texts(world, 2)).toEqual(["ask again", "approved: ask again"]);
  });

  test("the channel command /stop cancels the current run and discards the waiting messages", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "hold" });
    await world.say({ ...ann, messageId: "2", text: "two" });
    await world.say({ ...ann, messageId: "3", text: "/stop" });
    expect(await texts(world, 1)).toEqual(["Stopped. 1 waiting message was discarded."]);
    await world.say({ ...ann, messageId: "4", text: "four" });
    expect((await texts(world, 2))[1]).toBe("echo: four");
  });

  test("the channel command /new starts another session while a run of the previous session is in progress", async () => {
    const world = await open();
    await world.say({ ...ann, messageId: "1", text: "hold" });
    await world.say({ ...ann, messageId: "2", text: "/new" });
    await world.heard(1);
    await world.say({ ...ann, messageId: "3", text: "three" });
    expect(await texts(world, 2)).toEqual(["A new conversation begins.", "echo: three"]);
  });
}
