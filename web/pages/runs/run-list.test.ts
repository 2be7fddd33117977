import { expect, test, vi } from "vitest";
import { connected } from "../../api/runs-feed.ts";
import { filterOf } from "../../model/run-query.ts";
import { RunList } from "./run-list.ts";

test("a page of the run list that is requested while another page is being read is read after that page", async () => {
  const answers: ((page: object) => void)[] = [];
  const urls: string[] = [];
  vi.stubGlobal("fetch", (url: string) => {
    urls.push(new URL(url, "http://localhost").searchParams.get("after") ?? "first");
    return new Promise((resolve) =>
      answers.push((page) => resolve(new Response(JSON.stringify(page), { status: 200 }))),
    );
  });
  vi.stubGlobal("location", { origin: "http://localhost" });
  const list = new RunList(filterOf(new URLSearchParams()));
  const close = list.open();
  const answer = async (...runIds: readonly string[]): Promise<void> => {
    await vi.waitUntil(() => answers.length > 0);
    answers.shift()?.({ runs: runIds.map((runId) => ({ runId, createdAt: 1 })), next: "two" });
  };
  await answer("one");
  await vi.waitUntil(() => list.state.value === "more");
  // The server answers again, so the first page is read once more.
  connected.value++;
  await list.more();
  await answer("one");
  await answer("older");
  await vi.waitUntil(() => list.runs.value.length === 2);
  expect(urls).toEqual(["first", "first", "two"]);
  close();
  vi.unstubAllGlobals();
});
