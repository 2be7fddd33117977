import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { PageFiles } from "../../../src/surfaces/server/page-files.ts";
import { agent } from "../../runtime/runtime-setup.ts";
import { startServer, type TestServer } from "./test-server.ts";

const waiter = agent("waiter", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
const style = ":root { color: red }\n";
const script = `<script type="module" crossorigin src="/assets/index-1.js"></script>`;
const html = `<!doctype html><title>Reeve</title>${script}<style>${style}</style><body><div id="page"></div></body>`;
const input = `Port </script><script>alert("1")</script> & $& 'it'`;

describe("the page of a run", () => {
  const folder = mkdtempSync(join(tmpdir(), "reeve-page-head-"));
  let server: TestServer;
  let run: RunHandle;

  beforeAll(async () => {
    writeFileSync(join(folder, "index.html"), html);
    writeFileSync(join(folder, "after-paint.js"), "export {};");
    server = await startServer([waiter], { page: folder });
    const acme = server.runtime.forTenant({ tenantId: "acme" });
    run = await acme.submit(waiter, input);
  });

  afterAll(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const text = async (path: string, token?: string | null): Promise<string> =>
    (await server.call("GET", path, token === undefined ? {} : { token })).text;

  it("the page of a run contains its title, id and status, and its summary as JSON, for a caller who may read it", async () => {
    const page = await text(`/runs/${run.runId}/chart`, await server.tokenOf("acme", "read"));
    expect(page).toContain(`<code>${run.runId}</code>`);
    expect(page).toMatch(/<h1 class="cut">Port &lt;\/script&gt;&lt;script&gt;alert\(&quot;1&quot;\)/u);
    expect(page).toMatch(/<span class="status">(?:Running|Waits|Waits for a worker)<\/span>/u);
    const json = /<script type="application\/json" id="run-summary">(?<json>.*?)<\/script>/su.exec(page);
    const { title, runId } = JSON.parse(json?.groups?.["json"] ?? "null") as Record<string, string>;
    expect({ title, runId }).toEqual({ title: (await run.summary()).title, runId: run.runId });
    expect(title).toContain("</script>");
  });

  it("the page of a run contains no script that a title adds", async () => {
    const page = await text(`/runs/${run.runId}`);
    expect(page.match(/<script/gu)).toHaveLength(2);
    expect(page.match(/<\/script/gu)).toHaveLength(2);
  });

  it("the page of a run loads the script of the page after the first paint", async () => {
    const page = await text(`/runs/${run.runId}`);
    expect(page).toContain(
      `<script type="module" src="/after-paint.js" data-page="/assets/index-1.js"></script>`,
    );
    expect(page).not.toContain(script);
  });

  it("the page of a run loads the script of the page at once if the page was built without after-paint.js", async () => {
    const other = mkdtempSync(join(tmpdir(), "reeve-page-head-"));
    writeFileSync(join(other, "index.html"), html);
    const page = new PageFiles(other).find(`/runs/${run.runId}`, await run.summary());
    rmSync(other, { recursive: true, force: true, maxRetries: 10 });
    expect(await page?.text()).toContain(script);
  });

  it("the page of a run is not stored by caches, and allows no inline style but the one of the page", async () => {
    const { headers } = await server.call("GET", `/runs/${run.runId}`);
    expect(headers.get("cache-control")).toBe("no-store");
    const hash = createHash("sha256").update(style).digest("base64");
    expect(headers.get("content-security-policy")).toContain(
      `script-src 'self'; style-src 'self' 'sha256-${hash}';`,
    );
  });

  it("the page of a run shows no run to callers without a token, with a wrong token, and of another tenant", async () => {
    const other = await server.tokenOf("other", "admin");
    for (const token of [null, "wrong", other]) expect(await text(`/runs/${run.runId}`, token)).toBe(html);
  });

  it("the page of a run that does not exist, and of other views, contains no run", async () => {
    for (const path of ["/runs/run_00000000", "/runs", "/", "/inbox", `/sessions/${run.runId}`])
      expect(await text(path)).toBe(html);
  });
});
