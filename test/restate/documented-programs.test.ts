import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createEndpointHandler, type EndpointOptions } from "@restatedev/restate-sdk";
import { expect, onTestFinished, test } from "vitest";
import { RestateAdmin } from "../../src/assembly/restate.ts";
import { repository } from "../gates/run-node.ts";
import { fences } from "../package/code-blocks.ts";
import { RestateServer } from "./server.ts";

type Service = EndpointOptions["services"][number];

/** The programs for Restate of the document, as one module. `sendEmail` is the only name that they do not declare. */
async function documentedServices(sendEmail: string): Promise<readonly Service[]> {
  const markdown = await readFile(join(repository, "docs/coming-from/restate.md"), "utf8");
  const programs = fences(markdown).filter(
    ({ language, code }) => language === "js" && code.startsWith("// Restate\n"),
  );
  expect(programs.length).toBe(2);
  // Below the repository, so that the programs find the package of Restate.
  const cache = join(repository, "node_modules/.cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "restate-programs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const file = join(folder, "programs.mjs");
  await writeFile(file, [sendEmail, ...programs.map(({ code }) => code)].join("\n"));
  return Object.values((await import(pathToFileURL(file).href)) as Readonly<Record<string, Service>>);
}

test("the programs for Restate in docs/coming-from/restate.md run as printed on a Restate server", async () => {
  const email = Promise.withResolvers<readonly [string, string]>();
  Object.assign(globalThis, { documentedEmail: email });
  const services = await documentedServices(
    "const sendEmail = (name, secret) => globalThis.documentedEmail.resolve([name, secret]);",
  );
  const endpoint = createServer(createEndpointHandler({ services: [...services], logger: () => undefined }));
  endpoint.listen(0, "127.0.0.1");
  onTestFinished(() => void endpoint.close());
  const server = await RestateServer.start();
  onTestFinished(() => server.stop());
  await expect.poll(() => endpoint.listening).toBe(true);
  const { port } = endpoint.address() as AddressInfo;
  await new RestateAdmin(server.adminUrl).deploy(`http://127.0.0.1:${port}`);
  const call = async (path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${server.ingressUrl}/${path}`, {
      method: "POST",
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  const signup = call("signup/ada/run", { name: "ada" });
  const [name, secret] = await email.promise;
  await call("signup/ada/click", { secret });
  expect([name, await signup]).toEqual(["ada", true]);
  expect([
    await call("counter/a/add", 1),
    await call("counter/a/add", 2),
    await call("counter/a/get"),
  ]).toEqual([1, 3, 3]);
});
