import { expect, onTestFinished, test } from "vitest";
import { openGateway } from "../../../src/capabilities/gateway/gateway.ts";

test.each([
  ["https://api.example/v1", "without the version"],
  ["https://api.example/v1beta/", "without the version"],
  ["http://api.example", "http would send the key unencrypted"],
  ["http://127.example", "http would send the key unencrypted"],
  ["https://user:word@api.example", "without a user"],
  ["https://api.example?key=1", "without a user, a query"],
  ["ftp://api.example", "an http or https address"],
  ["api.example", "an http or https address"],
])("a gateway refuses the address %s of a provider: %s", async (baseUrl, problem) => {
  const opening = openGateway({ upstreams: { openai: { baseUrl, apiKey: "k" } } });
  await expect(opening).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(problem) as string,
  });
});

test.each([
  { baseUrl: "https://api.example" },
  { baseUrl: "https://api.example/openai/" },
  { baseUrl: "http://127.0.0.1:9" },
  { baseUrl: "http://localhost:9" },
  { baseUrl: "http://[::1]:9" },
  { baseUrl: "http://api.example", allowHttp: true },
])("a gateway accepts the provider address %o", async (upstream) => {
  const gateway = await openGateway({ upstreams: { openai: { ...upstream, apiKey: "k" } } });
  expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  onTestFinished(() => gateway.close());
  const { status } = await fetch(`${gateway.url}/v1/models`);
  expect(status).toBe(401);
});

test.each([
  [{}, "at least one provider"],
  [{ ollama: { baseUrl: "http://127.0.0.1:9", apiKey: "k" } }, "expected anthropic, openai or gemini"],
  [{ openai: { baseUrl: "http://127.0.0.1:9", apiKey: "" } }, "the key of the provider"],
  [{ openai: { baseUrl: "http://127.0.0.1:9", apiKey: "k", outputLimit: "tokens" } }, "outputLimit"],
  [{ openai: { baseUrl: "http://127.0.0.1:9", apiKey: "k", proxy: "x" } }, "proxy"],
])("a gateway refuses the provider addresses %o", async (upstreams, problem) => {
  await expect(openGateway({ upstreams } as never)).rejects.toThrow(problem);
});
