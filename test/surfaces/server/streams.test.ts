import { afterEach, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { Fault, type HostedAgent } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, until } from "../../runtime/runtime-setup.ts";
import { openSse, type SseReader } from "./sse-client.ts";
import { startServer, type TestServer, type TestServerOptions } from "./test-server.ts";

const open: TestServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(agents: readonly HostedAgent[], options?: TestServerOptions): Promise<TestServer> {
  const server = await startServer(agents, options);
  open.push(server);
  return server;
}

/** An agent that makes five steps, and then waits for the signal `go`. */
const counter = agent("counter", async (ctx) => {
  for (let at = 0; at < 5; at++) await ctx.step(`s${at}`, async () => at);
  await ctx.waitForSignal("go");
  return "done";
});

async function rest(stream: SseReader): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { id, event } of stream) ids.push(id ?? event);
  return ids;
}

function path(run: { readonly runId: string }, query = ""): string {
  return `/api/runs/${run.runId}/stream${query}`;
}

describe("the stream of a run", () => {
  it("the stream of a run sends every event once in order with its seq as id, follows the run, and ends with its status", async () => {
    const server = await serve([counter]);
    const run = await server.runtime.submit(counter, null);
    const stream = await openSse(server.url + path(run), { token: server.admin });
    const seen: (string | undefined)[] = [];
    for (;;) {
      const message = await stream.next();
      if (message === undefined) throw new Error("the stream ended early");
      seen.push(message.id);
      if (message.data["type"] === "task_suspend") break;
    }
    await run.signal("go");
    const later: unknown[] = [];
    for await (const { id, event, data } of stream) later.push(id ?? [event, data["status"]]);
    expect(later.at(-1)).toEqual(["end", "completed"]);
    const all = [...seen, ...later.slice(0, -1)];
    expect(all).toEqual(all.map((_id, seq) => String(seq)));
    expect(all).toHaveLength((await server.store.events.lastSeq(run.runId)) + 1);
  });

  it("the stream of a run resumes after Last-Event-ID, or at from, and answers 204 when an ended run has nothing new", async () => {
    const server = await serve([counter]);
    const run = await server.runtime.submit(counter, null);
    await run.signal("go");
    await run.result();
    const last = await server.store.events.lastSeq(run.runId);
    const expected = Array.from({ length: last - 2 }, (_each, at) => String(at + 3));
    const options = { token: server.admin };
    expect(await rest(await openSse(server.url + path(run), { ...options, lastEventId: "2" }))).toEqual([
      ...expected,
      "end",
    ]);
    expect(await rest(await openSse(server.url + path(run, "?from=3"), options))).toEqual([
      ...expected,
      "end",
    ]);
    const none = await server.call("GET", path(run), { headers: { "last-event-id": String(last) } });
    expect([none.status, none.text]).toEqual([204, ""]);
    const wrong = await server.call("GET", path(run), { headers: { "last-event-id": "run_1:2" } });
    expect(wrong.json).toMatchObject({ status: 400, code: "invalid_argument" });
  });

  it("the stream of a run sends text deltas without an id, earlier deltas to late readers, and no deltas with deltas=false", async () => {
    const held = gate();
    const model = scriptedModel([{ text: "Hello there", deltas: ["Hello", " there"] }]);
    const slow: typeof model = Object.assign(Object.create(model) as typeof model, {
      async *stream(...args: Parameters<NonNullable<typeof model.stream>>) {
        for await (const part of model.stream(...args)) {
          yield part;
          if (part.type === "text_delta") await held.promise;
        }
      },
    });
    const clerk = new Agent({ name: "clerk", model: slow });
    const server = await serve([clerk]);
    const { json } = await server.call("POST", "/api/runs", { body: { agent: "clerk", input: "Hi" } });
    const run = json["run"] as { readonly runId: string };
    const options = { token: server.admin };
    const texts = async (stream: SseReader): Promise<readonly unknown[]> => {
      const found: unknown[] = [];
      for await (const { id, data } of stream)
        if (data["type"] === "message_update") found.push([id, data["text"], data["offset"]]);
      return found;
    };
    const first = await openSse(server.url + path(run), options);
    for (
      let message = await first.next();
      message?.data["type"] !== "message_update";
      message = await first.next()
    )
      if (message === undefined) throw new Error("the stream ended early");
    const late = await openSse(server.url + path(run), options);
    const without = await openSse(server.url + path(run, "?deltas=false"), options);
    // Both have joined when they have got the events that are stored.
    for (const each of [late, without])
      for (
        let message = await each.next();
        message?.data["type"] !== "message_start";
        message = await each.next()
      )
        if (message === undefined) throw new Error("the stream ended early");
    held.resolve();
    expect(await texts(late)).toEqual([
      [undefined, "Hello", 0],
      [undefined, " there", 5],
    ]);
    expect(await texts(without)).toEqual([]);
    expect(await texts(first)).toEqual([[undefined, " there", 5]]);
  });

  it("the stream of a run sends many stored events in few chunks", async () => {
    const busy = agent("busy", async (ctx) => {
      for (let at = 0; at < 500; at++) await ctx.step("s", async () => at);
    });
    const server = await serve([busy]);
    const run = await server.runtime.submit(busy, null);
    await run.result();
    const stream = await openSse(server.url + path(run), { token: server.admin });
    expect((await rest(stream)).length).toBeGreaterThan(500);
    expect(stream.chunks()).toBeLessThan(50);
  });

  it("C3: watchers that open and close the stream of a run change nothing in the journal, and the run continues", async () => {
    const server = await serve([counter]);
    const run = await server.runtime.submit(counter, null);
    await until(async () => (await run.summary()).status === "waiting");
    const commits = async (): Promise<number> => {
      let last = -1;
      for await (const { number } of server.store.journal.read(run.runId)) last = number;
      return last;
    };
    const before = [await commits(), await server.store.events.verify(run.runId)];
    for (let round = 0; round < 5; round++) {
      const stream = await openSse(server.url + path(run), { token: server.admin });
      await stream.next();
      stream.leave();
    }
    expect([await commits(), await server.store.events.verify(run.runId)]).toEqual(before);
    await run.signal("go");
    expect((await run.result()).status).toBe("completed");
  });

  it("the stream of a run sends heartbeats while nothing happens", async () => {
    const server = await serve([counter], { limits: { heartbeatMs: 5 } });
    const run = await server.runtime.submit(counter, null);
    const stream = await openSse(server.url + path(run), { token: server.admin });
    void rest(stream).catch(() => undefined);
    await untilTrue(() => stream.comments.length >= 2);
    expect(stream.comments[0]).toBe("heartbeat");
    stream.leave();
  });

  it("the server ends the stream of a run when the token of its reader is revoked", async () => {
    const server = await serve([counter], { limits: { heartbeatMs: 5 } });
    const run = await server.runtime.submit(counter, null, { tenantId: "acme" });
    const token = await server.tokenOf("acme", "read");
    const stream = await openSse(server.url + path(run), { token });
    await stream.next();
    const [, tokenId = ""] = token.split("_");
    expect(await server.tokens.revoke(tokenId)).toBe(true);
    expect((await rest(stream)).length).toBeGreaterThan(0);
    expect((await server.call("GET", path(run), { token })).status).toBe(401);
  });

  it("the stream of a run is refused above the limit of a token with 429, and accepted again when another has ended", async () => {
    const server = await serve([counter], { limits: { maxStreamsPerToken: 2 } });
    const run = await server.runtime.submit(counter, null);
    const options = { token: server.admin };
    const streams = [
      await openSse(server.url + path(run), options),
      await openSse(server.url + path(run), options),
    ];
    const third = await server.call("GET", path(run));
    expect(third.json).toMatchObject({ status: 429, code: "rate_limited" });
    expect(third.headers.get("retry-after")).toBe("1");
    for (const stream of streams) stream.leave();
    await untilTrue(async () => {
      const again = await openSse(server.url + path(run), options);
      again.leave();
      return again.status === 200;
    });
  });
});

describe("the stream of a session", () => {
  it("the stream of a session sends the runs in order with RUN:SEQ as id, follows a new run, and resumes in the middle", async () => {
    const clerk = new Agent({ name: "clerk", model: scriptedModel(["one", "two", "three"]) });
    const server = await serve([clerk]);
    const submit = async (input: string): Promise<string> => {
      const run = await clerk.submit(input, { runtime: server.runtime, sessionId: "talk" });
      await run.result();
      return run.runId;
    };
    const [first, second] = [await submit("1"), await submit("2")];
    const url = `${server.url}/api/sessions/talk/stream`;
    const stream = await openSse(url, { token: server.admin });
    const ids: string[] = [];
    const read = async (runId: string): Promise<void> => {
      for (let message = await stream.next(); message !== undefined; message = await stream.next()) {
        if (message.id !== undefined) ids.push(message.id);
        if (message.data["type"] === "run_end" && message.data["runId"] === runId) return;
      }
    };
    await read(second);
    const third = await submit("3");
    await read(third);
    stream.leave();
    const expected: string[] = [];
    for (const runId of [first, second, third])
      for (let seq = 0; seq <= (await server.store.events.lastSeq(runId as never)); seq++)
        expected.push(`${runId}:${seq}`);
    expect(ids).toEqual(expected);

    const middle = expected.indexOf(`${second}:3`);
    const resumed = await openSse(url, { token: server.admin, lastEventId: expected[middle] ?? "" });
    const later: (string | undefined)[] = [];
    while (later.length < expected.length - middle - 1) later.push((await resumed.next())?.id);
    expect(later).toEqual(expected.slice(middle + 1));
    resumed.leave();
  });

  it("the stream of a session sends each event once to a reader that reconnects, although older runs were resumed", async () => {
    let isBroken = true;
    const fragile = agent("fragile", async (ctx) => {
      await ctx.step("begin", async () => 1);
      if (isBroken) throw new Fault("invalid_argument", "broken");
      return "done";
    });
    const server = await serve([fragile]);
    const url = `${server.url}/api/sessions/talk/stream`;
    const submit = () => server.runtime.submit(fragile, null, { sessionId: "talk" });
    const first = await submit();
    expect((await first.result()).status).toBe("failed");
    isBroken = false;
    const second = await submit();
    await second.result();

    interface Sent {
      readonly id: string | undefined;
      readonly event: string;
    }
    const nameOf = ({ data }: { readonly data: Record<string, unknown> }): string =>
      `${String(data["runId"])}:${String(data["seq"])}`;
    const total = async (): Promise<number> => {
      let count = 0;
      for (const { runId } of [first, second]) count += (await server.store.events.lastSeq(runId)) + 1;
      return count;
    };
    const readAll = async (lastEventId?: string, seen = 0): Promise<readonly Sent[]> => {
      const stream = await openSse(url, {
        token: server.admin,
        ...(lastEventId !== undefined && { lastEventId }),
      });
      const sent: Sent[] = [];
      while (sent.length < (await total()) - seen) {
        const message = await stream.next();
        if (message === undefined) throw new Error("the stream ended early");
        sent.push({ id: message.id, event: nameOf(message) });
      }
      stream.leave();
      return sent;
    };
    const offline = await readAll();
    await first.resume();
    await first.result();
    const online = await readAll();
    for (const before of [offline, online])
      for (const [at, { id, event }] of before.entries()) {
        // Once in the middle of each run, and at each change from one run to another.
        const isChange = !before[at + 1]?.event.startsWith(event.split(":")[0] ?? "");
        if (at % 4 !== 3 && !isChange) continue;
        const after = await readAll(id, at + 1);
        const events = [...before.slice(0, at + 1), ...after].map((sent) => sent.event);
        expect(new Set(events).size).toBe(events.length);
        expect(events).toHaveLength(await total());
      }
  });
});

describe("the stream of all runs", () => {
  it("the stream of all runs sends each changed run as it is in the list, and no earlier change", async () => {
    const server = await serve([counter]);
    const before = await server.runtime.submit(counter, null);
    await until(async () => (await before.summary()).status === "waiting");
    const stream = await openSse(`${server.url}/api/stream`, { token: server.admin });
    expect(await stream.next()).toMatchObject({ event: "ready" });
    const { json } = await server.call("POST", "/api/runs", { body: { agent: "counter", input: null } });
    const { runId } = json["run"] as { readonly runId: string };
    await server.call("POST", `/api/runs/${runId}/signal`, { body: { name: "go" } });
    const statuses: unknown[] = [];
    for (let message = await stream.next(); message !== undefined; message = await stream.next()) {
      expect(message.data["runId"]).toBe(runId);
      statuses.push(message.data["status"]);
      if (message.data["status"] === "completed") break;
    }
    const { runs } = await server.runtime.list();
    expect(runs.map(({ status }) => status)).toEqual(["completed", "waiting"]);
    await server.call("POST", `/api/runs/${before.runId}/cancel`);
    expect((await stream.next())?.data).toMatchObject({ runId: before.runId });
    stream.leave();
  });

  it("the stream of all runs contains only the runs of the token's tenant and user", async () => {
    const server = await serve([counter]);
    const stream = await openSse(`${server.url}/api/stream`, {
      token: await server.tokenOf("acme", "read", "ann"),
    });
    expect(await stream.next()).toMatchObject({ event: "ready" });
    await server.runtime.submit(counter, null, { tenantId: "other", userId: "ann" });
    await server.runtime.submit(counter, null, { tenantId: "acme", userId: "bob" });
    const own = await server.runtime.submit(counter, null, { tenantId: "acme", userId: "ann" });
    expect((await stream.next())?.data).toMatchObject({ runId: own.runId, userId: "ann" });
    stream.leave();
  });
});

/** Lets the event loop turn until a condition holds. The limit of the test ends it otherwise. */
async function untilTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise<void>((resolve) => void setImmediate(resolve));
}
