import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DesktopSession } from "../../../src/capabilities/desktop/index.ts";

let folder = "";
const servers: Server[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-x11-"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const server of servers.splice(0)) server.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

/** Starts a server that passes the first bytes of each client to the test and replies with `answer`. */
async function serve(answer: (hello: Buffer, socket: Socket) => void): Promise<string> {
  const path = join(folder, "x:0");
  const server = createServer((socket) => {
    socket.once("data", (hello) => answer(hello, socket));
  });
  servers.push(server);
  await once(server.listen(path), "listening");
  return path;
}

function refusal(reason: string): Buffer {
  const text = Buffer.from(reason.padEnd(Math.ceil(reason.length / 4) * 4));
  const head = Buffer.from([0, reason.length, 11, 0, 0, 0, text.length / 4, 0]);
  return Buffer.concat([head, text]);
}

test("DesktopSession says which variable to set and what to install if there is no display", async () => {
  vi.stubEnv("DISPLAY", "");
  await expect(new DesktopSession().getState()).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringMatching(/set DISPLAY or the option display.*apt-get install xvfb/u),
  });
});

test("DesktopSession names the address and what to do if no X server answers there", async () => {
  const desktop = new DesktopSession({ display: `${folder}/nothing:7` });
  await expect(desktop.click({ x: 1, y: 1 })).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringContaining(`no X server answers at ${folder}/nothing:7`),
  });
});

test.each(["", "zero", ":", "host"])("DesktopSession refuses the display name %j", async (display) => {
  vi.stubEnv("DISPLAY", "zero");
  await expect(new DesktopSession({ ...(display && { display }) }).getState()).rejects.toMatchObject({
    code: "invalid_argument",
  });
});

test("DesktopSession sends the cookie of its display only, and reports why the server refused it", async () => {
  const entry = (number: string, data: string) => {
    const field = (text: string) => [0, text.length, ...Buffer.from(text)];
    return [0xff, 0xff, ...field(""), ...field(number), ...field("MIT-MAGIC-COOKIE-1"), ...field(data)];
  };
  const file = join(folder, "authority");
  await writeFile(file, Buffer.from([...entry("9", "not this one"), ...entry("0", "sixteen letters!")]));
  vi.stubEnv("XAUTHORITY", file);
  let said = "";
  const display = await serve((hello, socket) => {
    said = hello.toString("latin1");
    socket.end(refusal("go away"));
  });
  await expect(new DesktopSession({ display }).getState()).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining("go away. Set XAUTHORITY"),
  });
  expect(said).toContain("sixteen letters!");
  expect(said).not.toContain("not this one");
});

test("DesktopSession fails if the server closes the connection, and the next use connects again", async () => {
  let calls = 0;
  const display = await serve((_hello, socket) => {
    calls++;
    socket.destroy();
  });
  const desktop = new DesktopSession({ display });
  for (let use = 1; use <= 2; use++) {
    await expect(desktop.getState()).rejects.toMatchObject({ code: "dependency_missing" });
    expect(calls).toBe(use);
  }
  await desktop.close();
});
