import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { agent } from "../../runtime/runtime-setup.ts";
import { startServer, type TestServer } from "./test-server.ts";

const waiter = agent("waiter", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
const html = `<!doctype html><title>Reeve</title><body><div id="page"></div></body>`;
const input = `Port </script><script>alert("1")</script> & $& 'it'`;

describe("the page of a run", () => {
  const folder = mkdtempSync(join(tmpdir(), "reeve-page-head-"));
  let server: TestServer;
  let run: RunHandle;

  beforeAll(async () => {
    writeFileSync(join(folder, "index.html"), html);
    server = await startServer([waiter], { page: folder });
    const acme = server.runtime.forTenant({ tenantId: "acme" });
    run = await acme.submit(waiter, input);
  });

  afterAll(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const text = async (path: string, token?: string | null): Promise<string> =>
    (await server.call("GET", path, token === undefined ? {} : { token })).text;

  it("contains its title, id and status, and its summary as JSON, for a caller who may read it", async () => {
    const page = await text(`/runs/${run.runId}/chart`, await server.tokenOf("acme", "read"));
    expect(page).toContain(`<code>${run.runId}</code>`);
    expect(page).toMatch(/<h1 class="cut">Port &lt;\/script&gt;&lt;script&gt;alert\(&quot;1&quot;\)/u);
    expect(page).toMatch(/<span class="status">(?:Running|Waits|Waits for a worker)<\/span>/u);
    const json = /<script type="application\/json" id="run-summary">(?<json>.*?)<\/script>/su.exec(page);
    const { title, runId } = JSON.parse(json?.groups?.["json"] ?? "null") as Record<string, string>;
    expect({ title, runId }).toEqual({ title: (await run.summary()).title, runId: run.runId });
    expect(title).toContain("</script>");
  });

  it("contains no script that a title adds", async () => {
    const page = await text(`/runs/${run.runId}`);
    expect(page.match(/<script/gu)).toHaveLength(1);
    expect(page.match(/<\/script/gu)).toHaveLength(1);
  });

  it("is not stored by caches, and keeps the policy of the page", async () => {
    const { headers } = await server.call("GET", `/runs/${run.runId}`);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("content-security-policy")).toContain("script-src 'self'");
  });

  it("is the page without a run for callers without a token, with a wrong one, and of another tenant", async () => {
    const other = await server.tokenOf("other", "admin");
    for (const token of [null, "wrong", other]) expect(await text(`/runs/${run.runId}`, token)).toBe(html);
  });

  it("is the page without a run for a run that does not exist, and for other views", async () => {
    for (const path of ["/runs/run_00000000", "/runs", "/", "/inbox", `/sessions/${run.runId}`])
      expect(await text(path)).toBe(html);
  });
});
