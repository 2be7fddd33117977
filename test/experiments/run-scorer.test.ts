import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { given, runScorer } from "./scorer-given.ts";

describe("runScorer()", () => {
  test.each([
    [true, 1],
    [false, 0],
    [0.25, 0.25],
    [{ score: true }, 1],
    [{ score: null }, null],
  ])("runScorer() gives a scorer that returns %j the score %j", async (output, score) => {
    const scorer = (): typeof output => output;
    expect(await runScorer(scorer, given(""))).toMatchObject({ score, error: null });
  });

  test.each([1.5, -0.1, Number.NaN, "0.5", undefined, { score: "high" }, {}, [1]])(
    "runScorer() gives a scorer that returns %j an error and not the score zero",
    async (output) => {
      const wrong = function wrong(): never {
        return output as never;
      };
      const score = await runScorer(wrong, given(""));
      expect(score.score).toBeNull();
      expect(score.error).toMatch(/^invalid score .* of scorer wrong: /u);
      expect(score.error).toContain("expected a number from 0 to 1");
    },
  );

  test("runScorer() gives a scorer that throws an error that names its file and line", async () => {
    const failing = function failing(): never {
      throw new Error("no such member");
    };
    const { score, error } = await runScorer(failing, given(""));
    expect(score).toBeNull();
    expect(error).toMatch(/^scorer failing failed: no such member \(\/.*run-scorer\.test\.ts:\d+\)$/u);
  });

  test("the error of a scorer contains no secret that its code has quoted", async () => {
    const leaking = function leaking(): never {
      throw new Error("401 for key sk-ant-REDACTED");
    };
    expect((await runScorer(leaking, given(""))).error).not.toContain("abcdefghijklmnop");
  });

  test("runScorer() takes an error that the scorer returns as its error, and a rationale as its reason", async () => {
    const failed = (): never => ({ name: "x", score: null, error: new Error("no key") }) as never;
    expect(await runScorer(failed, given(""))).toMatchObject({
      score: null,
      error: "scorer failed failed: no key",
    });
    const judged = () => ({ name: "x", score: 1, metadata: { rationale: "It is right." } });
    expect(await runScorer(judged, given(""))).toMatchObject({ score: 1, reason: "It is right." });
  });
});

describe("runScorer() under a budget", () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.end("1");
  });
  let url = "";
  beforeAll(async () => {
    await new Promise<void>((done) => {
      server.listen(0, "127.0.0.1", done);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });

  // A client keeps the function that it found when it was made.
  const earlier = globalThis.fetch;
  const viaFetch = async function viaFetch(): Promise<number> {
    return Number(await (await earlier(url)).text());
  };
  const viaHttp = async function viaHttp(): Promise<number> {
    return new Promise((done, fail) => {
      get(url, (response) => {
        response.resume();
        done(1);
      }).on("error", fail);
    });
  };
  const catching = async function catching(): Promise<number> {
    try {
      return await viaFetch();
    } catch {
      return 1;
    }
  };

  test.each([viaFetch, viaHttp, catching])(
    "a scorer under a budget that sends a request by $name outside of Reeve is refused before the request leaves",
    async (scorer) => {
      requests = 0;
      const { score, error } = await runScorer(scorer, given(""), { hasBudget: true });
      expect(score).toBeNull();
      expect(error).toMatch(
        new RegExp(
          `^scorer ${scorer.name} failed: scorer ${scorer.name} sent a request to .*127\\.0\\.0\\.1`,
          "u",
        ),
      );
      expect(requests).toBe(0);
    },
  );

  test("a scorer under a budget may send a request with a token of the gateway", async () => {
    requests = 0;
    const metered = async function metered(): Promise<number> {
      const headers = { authorization: `Bearer rvg_${"a".repeat(43)}` };
      return Number(await (await fetch(url, { headers })).text());
    };
    expect(await runScorer(metered, given(""), { hasBudget: true })).toMatchObject({ score: 1 });
    expect(requests).toBe(1);
  });

  test("a scorer without a budget may send requests, and so may other code while a scorer under a budget is executed", async () => {
    requests = 0;
    expect(await runScorer(viaFetch, given(""))).toMatchObject({ score: 1 });
    let end = (): void => {};
    const waiting = runScorer(
      async function waiting() {
        await new Promise<void>((done) => {
          end = done;
        });
        return 1;
      },
      given(""),
      { hasBudget: true },
    );
    expect(await viaFetch()).toBe(1);
    end();
    expect(await waiting).toMatchObject({ score: 1 });
    expect(requests).toBe(2);
  });
});
