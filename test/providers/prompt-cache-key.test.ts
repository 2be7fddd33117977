import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withSettings } from "../../src/capabilities/index.ts";
import { Agent } from "../../src/entries/index.ts";
import { userMessage } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { mockProviders, providerKeys, usage, type MockProviders } from "./mock-providers.ts";

let providers: MockProviders;
beforeAll(async () => {
  providers = await mockProviders();
  providers.mock.on({ userMessage: "hello" }, { content: "Hello.", usage: usage(11, 5) });
});
beforeEach(() => {
  providers.sent.length = 0;
});
afterAll(() => providers.stop());

const keysSent = () => providers.sent.map((body) => body["prompt_cache_key"]);

describe("the prompt cache key of a request", () => {
  test.each(["openai", "openai chat"] as const)(
    "%s receives one prompt_cache_key per session, also from a second runtime",
    async (key) => {
      const memory = memoryStore({ hash: sha256 });
      const store = { ...memory, close: async () => undefined };
      const agent = new Agent({ name: "clerk", model: providers.models[key] });
      for (const sessionId of ["chat-1", "chat-1", "chat-2"]) {
        const runtime = await createRuntime({ store });
        await agent.invoke("hello", { runtime, sessionId });
        await runtime.close();
      }
      const [first, second, third] = keysSent();
      expect(first).toMatch(/^[\w-]{32}$/u);
      expect(second).toBe(first);
      expect(third).not.toBe(first);
      expect(third).toMatch(/^[\w-]{32}$/u);
    },
  );

  test("a prompt cache key in providerOptions takes precedence over the key of the session", async () => {
    const providerOptions = { openai: { promptCacheKey: "team-7" } };
    const model = withSettings(providers.models.openai, { providerOptions });
    await new Agent({ name: "clerk", model }).invoke("hello");
    expect(keysSent()).toEqual(["team-7"]);
  });

  test.each(providerKeys.filter((key) => !key.startsWith("openai") || key === "openai-compatible"))(
    "%s receives no prompt_cache_key, because it has no such option",
    async (key) => {
      await new Agent({ name: "clerk", model: providers.models[key] }).invoke("hello");
      expect(providers.sent).toHaveLength(1);
      expect(JSON.stringify(providers.sent)).not.toMatch(/prompt_?cache_?key/iu);
    },
  );

  test("a compatible server that is named openai receives no prompt_cache_key", async () => {
    const bodies: string[] = [];
    const spy: typeof fetch = (input, init) => {
      if (typeof init?.body === "string") bodies.push(init.body);
      return fetch(input, init);
    };
    const settings = { name: "openai", apiKey: "not-a-key", baseURL: `${providers.url}/v1`, fetch: spy };
    const model = createOpenAICompatible(settings)("some-model");
    await new Agent({ name: "clerk", model }).invoke("hello");
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).not.toMatch(/prompt_?cache_?key/iu);
  });

  test("a model call outside any run sends no prompt_cache_key", async () => {
    await providers.models.openai.generate({ messages: [userMessage("hello")] });
    expect(keysSent()).toEqual([undefined]);
  });
});
