import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { repository } from "../../gates/run-node.ts";
import { botToken, FakeTelegram } from "../channels/fake-telegram.ts";
import { env, setUp } from "./model-server.ts";
import { reeve } from "./reeve-process.ts";

const main = join(repository, "src/surfaces/cli/main.ts");

interface Serving {
  /** Resolves with everything on stderr once it contains a text. */
  readonly said: (text: string) => Promise<string>;
  readonly stop: () => Promise<number | null>;
}

async function serve(cwd: string, variables: Record<string, string>): Promise<Serving> {
  const child = spawn(process.execPath, [main, "serve", "--port", "0"], {
    cwd,
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  let changed = Promise.withResolvers<void>();
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    changed.resolve();
    changed = Promise.withResolvers<void>();
  });
  const exit = once(child, "exit") as Promise<[number | null]>;
  const failed = exit.then(() => {
    throw new Error(`reeve serve ended: ${said}`);
  });
  await Promise.race([once(createInterface({ input: child.stdout }), "line"), failed]);
  failed.catch(() => undefined);
  return {
    said: async (text) => {
      while (!said.includes(text)) await changed.promise;
      return said;
    },
    stop: async () => {
      child.kill("SIGTERM");
      return (await exit)[0];
    },
  };
}

async function writeSettings(folder: string, telegram: JsonObject): Promise<void> {
  await mkdir(folder, { recursive: true });
  const settings = { server: { channels: { telegram: { type: "telegram", ...telegram } } } };
  await writeFile(join(folder, "settings.json"), JSON.stringify(settings));
}

test("reeve serve answers a Telegram sender from reeve pair approve until reeve pair revoke, by the rules of the platform", async () => {
  const { folder, url, requests } = await setUp(() => ({ text: "It is **green**." }));
  const telegram = await FakeTelegram.start();
  onTestFinished(() => telegram.close());
  const home = join(folder, "home");
  await writeSettings(home, { apiUrl: telegram.url, tokenEnv: "BOT" });
  const variables = { ...env(url), REEVE_HOME: home, BOT: botToken };
  const server = await serve(folder, variables);
  expect(await server.said("Channels: telegram.")).toContain("reeve pair");
  telegram.say("7", "7", "1", "Which colour?");
  await telegram.until(() => telegram.sent.length === 1);
  const code = /approve (\S+)/u.exec(telegram.sent[0]?.text ?? "")?.[1] ?? "";
  const wrong = await reeve(["pair", "approve", "AAAA-AAAA"], { cwd: folder, env: variables });
  expect([wrong.code === 0, wrong.talk.includes("no pairing code like this")]).toEqual([false, true]);
  const approved = await reeve(["pair", "approve", code.toLowerCase(), "--user", "ann"], {
    cwd: folder,
    env: variables,
  });
  expect(approved).toMatchObject({ code: 0, out: ["telegram:7"] });
  telegram.say("7", "7", "2", "Which colour?");
  await telegram.until(() => telegram.sent.length === 2);
  expect(telegram.sent[1]).toMatchObject({
    chat_id: 7,
    text: "It is green.",
    entities: [{ type: "bold", offset: 6, length: 5 }],
  });
  expect(requests).toHaveLength(1);
  expect(JSON.stringify(requests[0])).toContain("You answer in Telegram.");
  const runs = await reeve(["ps", "--all", "--json"], { cwd: folder, env: variables });
  expect(runs.out.map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
    { userId: "ann", metadata: { channel: "telegram" }, status: "completed" },
  ]);
  const listed = await reeve(["pair", "list", "--json"], { cwd: folder, env: variables });
  expect(listed.out.map((line) => JSON.parse(line) as JsonObject)).toMatchObject([
    { channel: "telegram", senderId: "7", senderName: "Person 7", userId: "ann", tenantId: null },
  ]);
  expect((await reeve(["pair", "revoke", "telegram:7"], { cwd: folder, env: variables })).out).toEqual([
    "telegram:7",
  ]);
  telegram.say("7", "7", "3", "Which colour?");
  await telegram.until(() => telegram.sent.length === 3);
  expect(telegram.sent[2]?.text).toContain("reeve pair approve");
  expect(await server.stop()).toBe(0);
});

test("reeve serve ignores the channels of a project that is not trusted, and names an environment variable that is missing", async () => {
  const { folder, url } = await setUp(() => ({ text: "Hi." }));
  const telegram = await FakeTelegram.start();
  onTestFinished(() => telegram.close());
  await writeSettings(join(folder, ".reeve"), { apiUrl: telegram.url, tokenEnv: "BOT" });
  const variables = { ...env(url), REEVE_HOME: join(folder, "home"), BOT: botToken };
  const server = await serve(folder, variables);
  expect(await server.said("server.channels")).not.toContain("Channels:");
  expect(await server.stop()).toBe(0);
  expect(telegram.calls).toEqual([]);
  await writeSettings(join(folder, "home"), { tokenEnv: "MISSING_BOT" });
  const failed = await reeve(["serve", "--port", "0"], { cwd: folder, env: variables });
  expect(failed.code).not.toBe(0);
  expect(failed.talk).toContain("channel telegram needs the environment variable MISSING_BOT; set it");
});
