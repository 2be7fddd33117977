import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  Agent,
  auditLog,
  Fault,
  openRuntime,
  openStore,
  tool,
  type Telemetry,
} from "../../src/entries/index.ts";
import { tracing } from "../../src/assembly/middleware.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** The part of each invented secret that no reader may see. It is assembled, so that scanners do not find secrets here. */
const core = ["aB3dE5fG7hJ9kL1m", "N3pQ5rS7tU9vW1xY"].join("");
const hex = "0a1b2c3d4e5f6a7b".repeat(4);
const dashes = "-".repeat(5);

function pem(kind: string): string {
  const edge = (word: string): string => `${dashes}${word} ${kind}PRIVATE KEY${dashes}`;
  return `${edge("BEGIN")}\n${`${core}\n`.repeat(6)}${edge("END")}`;
}

/** Texts with a secret, as errors of clients and providers quote them. */
const secrets: readonly (readonly [what: string, text: string, hidden: string])[] = [
  ["an RSA private key", `cannot sign with ${pem("RSA ")}`, core],
  ["a private key without an algorithm", pem(""), core],
  ["an encrypted private key", pem("ENCRYPTED "), core],
  ["an OpenSSH private key", pem("OPENSSH "), core],
  ["a private key in JSON", JSON.stringify({ private_key: pem("") }), core],
  ["a private key that was cut off", pem("EC ").slice(0, 100), core],
  ["an npm token", `403 for ${["npm", core, "1234"].join("_").replace("_1234", "1234")}`, core],
  ["an npm token in .npmrc", `//registry.npmjs.org/:_authToken=${core}`, core],
  ["an AWS key id", `${["AK", "IA"].join("")}Q3EGR7ZX2LM4P8TW`, "Q3EGR7"],
  ["an AWS secret key in a profile", `aws_secret_access_key = ${core}/12345678`, core],
  ["an AWS secret key in JSON", JSON.stringify({ SecretAccessKey: `${core}+0` }), core],
  ["an AWS session token", `AWS_SESSION_TOKEN=${core}==`, core],
  ["a signature in an AWS URL", `https://s3.example/x?X-Amz-Signature=${hex}&y=1`, hex],
  ["a SendGrid key", ["SG", core.slice(0, 22), `${core}9`].join("."), core.slice(0, 22)],
  ["a signing secret of Stripe", ["whsec", core].join("_"), core],
  ["a live key of Stripe", ["sk", "live", core].join("_"), core],
  ["a restricted key of Stripe", ["rk", "live", core].join("_"), core],
  ["a DigitalOcean token", ["dop", "v1", hex].join("_"), hex],
  ["a DigitalOcean refresh token", ["dor", "v1", hex].join("_"), hex],
  ["an Azure storage key", `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${core}==;`, core],
  ["an Azure service bus key", `Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey=${core}=`, core],
  ["an Azure client secret", ["abc8Q", `${core}z9`].join("~"), core],
  ["an Azure SAS signature", `https://a.example/c?sv=2024&sig=${core}%3D`, core],
  ["an Azure subscription key", `Ocp-Apim-Subscription-Key: ${core}`, core],
  ["a cookie header", `GET / Cookie: session=${core}; theme=dark`, core],
  ["a set-cookie header", `Set-Cookie: sid=${core}; Path=/; HttpOnly`, core],
  ["cookies in JSON", JSON.stringify({ "set-cookie": ["a=b", `sid=${core}`] }), core],
  ["a bearer token", `Authorization: Bearer ${core}`, core],
  ["basic credentials", `authorization: Basic ${core}==`, core],
  ["a password in a URL", `connect ECONNREFUSED postgres://ann:${core}@db.example/x`, core],
  ["a GitHub token", ["ghp", core].join("_"), core],
  ["a Slack app token", ["xapp", "1", core].join("-"), core],
  ["a Google client secret", ["GOCSPX", core].join("-"), core],
  ["a PyPI token", ["pypi", core].join("-"), core],
  ["a JSON web token", ["eyJhbGciOiJIUzI1NiJ9", `eyJ${core}`, core].join("."), core],
  ["a client secret of OAuth", `client_secret=${core}&grant_type=x`, core],
  ["a refresh token", JSON.stringify({ refresh_token: core }), core],
];

/** A telemetry of a user that keeps the text of everything it receives. */
function spy(): { readonly telemetry: Telemetry; readonly text: () => string } {
  const received: string[] = [];
  const keep = (value: unknown): void => {
    received.push(
      value instanceof Error ? `${value.message} ${value.stack}` : "",
      JSON.stringify(value) ?? "",
    );
  };
  return {
    telemetry: {
      startSpan: (name, options) => {
        keep([name, options?.attributes]);
        return { set: keep, fail: keep, end: () => {}, during: (body) => body() };
      },
      count: (_metric, _amount, attributes) => keep(attributes),
      measure: (_metric, _value, attributes) => keep(attributes),
    },
    text: () => received.join("\n"),
  };
}

describe("attacks on secrets: an error or a text that quotes a secret", () => {
  test.each(secrets)("no stored fault contains %s", (_what, text, hidden) => {
    const fault = new Fault("model_auth", `refused: ${text}`, {
      details: { body: text, list: [text] },
      cause: new Error(text),
    });
    expect(JSON.stringify(fault.toJSON())).not.toContain(hidden);
  });

  test.each(secrets)("%s that a tool and a model quote is not in telemetry", async (_what, text, hidden) => {
    const { telemetry, text: seen } = spy();
    const leak = tool({
      name: "leak",
      description: "Fails",
      inputSchema: { type: "object" } as const,
      execute: () => Promise.reject(new Error(text)),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "leak", input: {} }] }, { error: new Error(text) }]);
    const agent = new Agent({
      name: "clerk",
      model,
      tools: [leak],
      middleware: [tracing({ telemetry, content: true })],
    });
    const runtime = await openRuntime({ retry: { enabled: false } });
    const { status } = await agent.invoke("Go.", { runtime });
    await runtime.close();
    expect(status).toBe("failed");
    expect(seen()).toContain("execute_tool leak");
    expect(seen()).not.toContain(hidden);
  });
});

describe("attacks on the log: a run in the file is given to another user", () => {
  test.each([
    ["another user", "UPDATE runs SET user_id = 'mallory'"],
    ["no user", "UPDATE runs SET user_id = NULL"],
    ["another tenant", "UPDATE runs SET tenant = '=evil'"],
    ["no tenant", "UPDATE runs SET tenant = '-'"],
    ["another session", "UPDATE runs SET session_id = 'ses_other'"],
    ["another agent", "UPDATE runs SET agent_id = 'other'"],
  ])("verify() reports a run with %s as modified, with and without an audit key", async (_what, sql) => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-attack-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    for (const key of [{}, { auditKey: "an audit key" }]) {
      const path = join(folder, `${Object.keys(key).length}.db`);
      const runtime = await openRuntime({ store: `sqlite:${path}`, ...key });
      const agent = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
      const { runId } = await agent.invoke("Go.", { runtime, userId: "ann", tenantId: "acme" });
      await runtime.close();
      expect(await verdict(path, runId, key)).toMatchObject({ ok: true });
      const file = new DatabaseSync(path);
      file.exec(sql);
      file.close();
      expect(await verdict(path, runId, key)).toMatchObject({ ok: false, seq: 0 });
    }
  });
});

async function verdict(path: string, runId: string, key: { readonly auditKey?: string }): Promise<unknown> {
  const store = await openStore(`sqlite:${path}`, key);
  try {
    return await auditLog(store).verify(runId);
  } finally {
    await store.close();
  }
}
