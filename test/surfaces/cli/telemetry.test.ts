import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { serve } from "./serve-process.ts";
import { env, setUp, type Script } from "./model-server.ts";
import { startReceiver, type Receiver } from "./otlp-receiver.ts";
import { main, reeve, reeveProcess, type Said } from "./reeve-process.ts";
import { startWorker } from "./worker-process.ts";

const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";

/** Calls the tool `read`, then answers. */
const readsOnce: Script = (request) =>
  request === 1 ? { tool: "read", input: { path: "notes.txt" } } : { text: `The lamp is green, ${secret}.` };

/** Runs the agent with these variables beside the address of a collector. */
async function exportedRun(variables: Readonly<Record<string, string>> = {}, script = readsOnce) {
  const { folder, url } = await setUp(script);
  const receiver = await startReceiver();
  const place = {
    cwd: folder,
    env: { ...env(url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...variables },
  };
  const said = await reeve(["run", "Which colour?", "--tools", "read"], place);
  expect(said.code).toBe(0);
  return { said, receiver };
}

function runIdIn({ talk }: Said): string {
  return /run_[\w-]+/u.exec(talk)?.[0] ?? "";
}

/** The id of the trace of a tree of runs, as the documentation states it. */
function traceOf(runId: string): string {
  return createHash("sha256").update(`trace ${runId}`).digest("hex").slice(0, 32);
}

/** The spans as lines, each indented below its parent. */
function treeOf({ spans }: Receiver, parentSpanId = "", depth = 0): readonly string[] {
  return spans
    .filter((span) => span.parentSpanId === parentSpanId)
    .toSorted((one, other) => Number(one.start - other.start))
    .flatMap((span) => [
      `${"  ".repeat(depth)}${span.name}`,
      ...treeOf({ spans } as Receiver, span.spanId, depth + 1),
    ]);
}

describe("the export over OTLP", () => {
  test("reeve run exports one trace, whose id follows from the run's, as protobuf and without contents", async () => {
    const { said, receiver } = await exportedRun();
    expect(treeOf(receiver)).toEqual([
      "invoke_agent assistant",
      "  chat gpt-4o",
      "  execute_tool read",
      "  chat gpt-4o",
    ]);
    const runId = runIdIn(said);
    expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([traceOf(runId)]));
    const [root] = receiver.named("invoke_agent assistant");
    expect(root).toMatchObject({
      kind: 1,
      status: 0,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "assistant",
        "gen_ai.usage.input_tokens": 2_000,
        "gen_ai.usage.output_tokens": 200,
        "gen_ai.response.finish_reasons": ["stop"],
        "reeve.run.id": runId,
        "reeve.status": "completed",
      },
      resource: { "service.name": "reeve", "telemetry.sdk.language": "nodejs" },
    });
    const [first, second] = receiver.named("chat gpt-4o");
    expect(first).toMatchObject({
      kind: 3,
      attributes: {
        "gen_ai.provider.name": "openai-compatible",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 1_000,
      },
    });
    expect(second?.start).toBeGreaterThanOrEqual(first?.end ?? 0n);
    expect(receiver.requests[0]).toMatchObject({
      path: "/v1/traces",
      headers: { "content-type": "application/x-protobuf" },
    });
    expect(JSON.stringify(receiver.spans.map(({ attributes }) => attributes))).not.toMatch(
      /lamp|colour|notes/u,
    );
  });

  test("the variables choose JSON, the headers, the name of the service and metrics", async () => {
    const { receiver } = await exportedRun({
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=acme",
      OTEL_SERVICE_NAME: "desk",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    expect(new Set(receiver.requests.map(({ path }) => path))).toEqual(
      new Set(["/v1/traces", "/v1/metrics"]),
    );
    for (const { headers } of receiver.requests) expect(headers).toMatchObject({ "x-tenant": "acme" });
    expect(receiver.spans[0]?.resource).toMatchObject({
      "service.name": "desk",
      "deployment.environment.name": "test",
    });
    const totals = receiver.points
      .toSorted((one, other) => one.metric.localeCompare(other.metric))
      .map(({ metric, attributes, sum, count }) => [
        metric,
        attributes["gen_ai.token.type"] ?? attributes["gen_ai.tool.name"] ?? null,
        metric.endsWith("duration") ? count : sum,
      ]);
    expect(totals).toEqual([
      ["gen_ai.client.operation.duration", null, 2],
      ["gen_ai.client.token.usage", "input", 2_000],
      ["gen_ai.client.token.usage", "output", 200],
      ["gen_ai.execute_tool.duration", "read", 1],
      ["gen_ai.invoke_agent.duration", null, 1],
      ["reeve.client.cost", null, expect.closeTo(0.007)],
    ]);
  });

  test("contents are exported if a variable asks for them, without secrets", async () => {
    const { receiver } = await exportedRun({
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "SPAN_ONLY",
    });
    const [root] = receiver.named("invoke_agent assistant");
    const [tool] = receiver.named("execute_tool read");
    const answer = receiver.named("chat gpt-4o").at(-1);
    expect(JSON.parse(String(root?.attributes["gen_ai.input.messages"]))).toEqual([
      { role: "user", parts: [{ type: "text", content: "Which colour?" }] },
    ]);
    expect(JSON.parse(String(tool?.attributes["gen_ai.tool.call.arguments"]))).toEqual({ path: "notes.txt" });
    expect(tool?.attributes["gen_ai.tool.call.result"]).toContain("The lamp is green.");
    expect(JSON.parse(String(answer?.attributes["gen_ai.output.messages"]))).toEqual([
      {
        role: "assistant",
        parts: [{ type: "text", content: expect.stringContaining("The lamp is green") }],
        finish_reason: "stop",
      },
    ]);
    expect(JSON.stringify(receiver.spans.map(({ attributes }) => attributes))).not.toContain(secret);
  });

  test.for([
    [{ OTEL_SDK_DISABLED: "true" }, []],
    [{ OTEL_TRACES_EXPORTER: "none" }, ["/v1/metrics"]],
    [{ OTEL_METRICS_EXPORTER: "none" }, ["/v1/traces"]],
    [{ OTEL_TRACES_SAMPLER: "always_off" }, ["/v1/metrics"]],
    [{ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }, ["/v1/metrics"]],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "/own/v1/traces" },
      ["/own/v1/traces"],
    ],
  ] as const)("%j sends requests to %j", async ([variables, paths]) => {
    const { folder, url } = await setUp(readsOnce);
    const receiver = await startReceiver();
    const own: Record<string, string> = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...variables };
    const traces = own["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if (traces !== undefined) own["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = receiver.url + traces;
    const said = await reeve(["run", "Hi"], { cwd: folder, env: { ...env(url), ...own } });
    expect(said.code).toBe(0);
    expect([...new Set(receiver.requests.map(({ path }) => path))]).toEqual(paths);
  });

  test.for([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "expected an address such as http://127.0.0.1:4318"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "expected http/protobuf or http/json; a collector receives"],
    ["OTEL_TRACES_EXPORTER", "zipkin", "expected otlp or none"],
    ["OTEL_TRACES_SAMPLER", "jaeger_remote", "expected always_on, always_off, traceidratio"],
    ["OTEL_BSP_SCHEDULE_DELAY", "soon", "expected a whole number from 1"],
    ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "maybe", "expected true, false, SPAN_ONLY"],
  ] as const)("%s=%s is refused before a run exists", async ([name, value, expected]) => {
    const { folder, url, requests } = await setUp(readsOnce);
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
    const place = { cwd: folder, env: { ...env(url), ...endpoint, [name]: value } };
    for (const command of [["run", "Hi"], ["worker"], ["serve"], ["chat", "--mode", "text"]]) {
      const { code, talk } = await reeve(command, place);
      expect([command[0], code, talk]).toEqual([
        command[0],
        2,
        expect.stringContaining(`invalid ${name} "${value}": ${expected}`),
      ]);
    }
    expect(requests).toEqual([]);
  });

  test("a collector that refuses everything is reported once for each signal, and the run completes", async () => {
    const { folder, url } = await setUp(readsOnce);
    const receiver = await startReceiver({ status: 400 });
    const place = { cwd: folder, env: { ...env(url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } };
    const { code, talk } = await reeve(["run", "Hi", "--tools", "read"], place);
    expect(code).toBe(0);
    expect(talk.match(/telemetry: .*/gu)).toEqual([
      expect.stringMatching(/^telemetry: traces were not exported \(.*\); the runs are not affected/u),
      expect.stringMatching(/^telemetry: metrics were not exported \(.*\); the runs are not affected/u),
    ]);
  });

  test("the process of reeve run ends although the collector never answers", async () => {
    const { folder, url } = await setUp(readsOnce);
    const receiver = await startReceiver({ status: null });
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT: "86400000" };
    const { code, out, talk } = await reeveProcess(["run", "Hi", "--tools", "read"], {
      cwd: folder,
      env: { ...env(url), ...variables },
    });
    expect([code, out.at(-1)]).toEqual([0, expect.stringContaining("The lamp is green")]);
    expect(talk).toContain("telemetry: the collector has not answered within 3 seconds");
    expect(receiver.requests).not.toEqual([]);
  });

  test("a worker that takes over the run of a killed one continues its trace and exports what was not sent", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 2 ? undefined : readsOnce(request, {}),
    );
    const receiver = await startReceiver();
    const place = {
      main,
      cwd: folder,
      env: { ...env(url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: "86400000" },
    };
    const one = await startWorker(place);
    const runId = await submitted(folder);
    await asked(2);
    one.signal("SIGKILL");
    await one.ended;
    expect(receiver.spans).toEqual([]);
    const two = await startWorker(place);
    await two.logged(({ event }) => event === "run_ended");
    two.signal("SIGTERM");
    expect(await two.ended).toBe(0);
    expect(treeOf(receiver)).toEqual([
      "invoke_agent assistant",
      "  chat gpt-4o",
      "  execute_tool read",
      "  chat gpt-4o",
      "  chat gpt-4o",
    ]);
    expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([traceOf(runId)]));
    const lost = receiver.named("chat gpt-4o").filter(({ status }) => status === 2);
    expect(lost).toMatchObject([{ attributes: { "error.type": "lost" } }]);
    const again = receiver
      .named("chat gpt-4o")
      .filter(({ attributes }) => attributes["reeve.again"] === true);
    expect(again).toMatchObject([{ status: 0, attributes: { "gen_ai.response.finish_reasons": ["stop"] } }]);
  });

  test("reeve serve exports the runs of its callers when SIGTERM ends it", async () => {
    const { folder, url } = await setUp(readsOnce);
    const receiver = await startReceiver();
    const variables = { ...env(url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
    const server = await serve(folder, variables, "--no-token");
    const runId = await submitted(folder);
    await expect.poll(() => receiver.named("invoke_agent assistant")).toHaveLength(1);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(receiver.requests.map(({ path }) => path)).toContain("/v1/metrics");
    expect(receiver.spans[0]?.traceId).toBe(traceOf(runId));
  });
});

/** Submits a run that this process does not execute, and returns its id. */
async function submitted(folder: string): Promise<string> {
  await mkdir(join(folder, ".reeve"), { recursive: true });
  const runtime = await openRuntime({
    store: `sqlite:${join(folder, ".reeve/reeve.db")}`,
    engine: idleEngine,
    sameName: "replace",
  });
  onTestFinished(() => runtime.close());
  const agent = new Agent({ name: "assistant", model: scriptedModel([]) });
  return (await runtime.submit(agent, "Which colour?", { streaming: true })).runId;
}
