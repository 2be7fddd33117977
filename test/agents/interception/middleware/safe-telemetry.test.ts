import { expect, test } from "vitest";
import { safeTelemetry } from "../../../../src/agents/interception/middleware/safe-telemetry.ts";
import { Fault, type Span, type Telemetry } from "../../../../src/kernel/index.ts";
import { Agent, openRuntime } from "../../../../src/entries/index.ts";
import { tracing } from "../../../../src/assembly/middleware.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const key = ["sk", "proj", "4f9Ab3kQ2mZ8xY7wV6uT5sR4"].join("-");

/** A telemetry that keeps everything it receives. */
function keeping(): { readonly telemetry: Telemetry; readonly received: unknown[] } {
  const received: unknown[] = [];
  const span: Span = {
    set: (attributes) => void received.push(attributes),
    fail: (error) => void received.push(error),
    end: () => {},
    during: (body) => body(),
  };
  const telemetry: Telemetry = {
    startSpan: (name, options) => {
      received.push(name, options?.attributes);
      return span;
    },
    count: (_metric, _amount, attributes) => void received.push(attributes),
    measure: (_metric, _value, attributes) => void received.push(attributes),
  };
  return { telemetry, received };
}

/** Everything that was received, with the message, the stack and all properties of errors. */
function textOf(received: readonly unknown[]): string {
  return JSON.stringify(received, (_name, value: unknown) =>
    value instanceof Error
      ? Object.fromEntries(Object.getOwnPropertyNames(value).map((name) => [name, Reflect.get(value, name)]))
      : value,
  );
}

test("a custom telemetry receives attributes and errors without secrets", () => {
  const { telemetry, received } = keeping();
  const safe = safeTelemetry(telemetry, (error) => {
    throw error;
  });
  const span = safe.startSpan("chat", { attributes: { url: `https://a.example/?key=${key}` } });
  span.set({ header: `Bearer ${key}`, list: [`cookie: sid=${key}`], tokens: 3, isDone: true });
  const error = Object.assign(new Error(`refused ${key}`, { cause: new Error(key) }), {
    request: { headers: { authorization: key } },
  });
  span.fail(error);
  span.fail(new Fault("model_auth", `refused ${key}`, { details: { key } }));
  span.fail(`thrown text ${key}`);
  expect(textOf(received)).not.toContain("4f9Ab3kQ2m");
  expect(received).toEqual([
    "chat",
    { url: "https://a.example/?key=[secret]" },
    { header: "Bearer [secret]", list: ["cookie: [secret]"], tokens: 3, isDone: true },
    expect.objectContaining({ name: "Error", message: "refused [secret]", code: "internal" }),
    expect.objectContaining({ message: "refused [secret]", code: "model_auth" }),
    expect.objectContaining({ message: "thrown text [secret]" }),
  ]);
});

test("tracing() with content sends prompts and errors of a run to a custom telemetry without secrets", async () => {
  const { telemetry, received } = keeping();
  const model = scriptedModel([`The key is ${key}.`, { error: new Error(`401: wrong key ${key}`) }]);
  const agent = new Agent({ name: "scout", model, middleware: [tracing({ telemetry, content: true })] });
  const runtime = await openRuntime({ retry: { enabled: false } });
  await agent.invoke(`Use ${key}`, { runtime });
  await agent.invoke("Again", { runtime });
  await runtime.close();
  expect(textOf(received)).toContain("[secret]");
  expect(textOf(received)).toContain("wrong key");
  expect(textOf(received)).not.toContain("4f9Ab3kQ2m");
});
