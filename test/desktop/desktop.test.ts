import { inflateSync } from "node:zlib";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import {
  DesktopSession,
  desktopTools,
  type DesktopOptions,
  type DesktopWindow,
} from "../../src/capabilities/desktop/index.ts";
import type { ModelRequest } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { Display, type Ended } from "./display.ts";

const programs = inject("programs");
/** How long to wait for programs on a busy machine. */
const patience = { timeout: 30_000 };
const sessions: DesktopSession[] = [];
let display: Display;
let folder = "";

afterEach(async () => {
  for (const session of sessions.splice(0)) await session.close();
  await display.clear();
});

function open(options: DesktopOptions = {}): DesktopSession {
  const session = new DesktopSession({
    display: display.name,
    accessibilityBus: display.bus,
    settleMs: 0,
    ...options,
  });
  sessions.push(session);
  return session;
}

/** Waits for the window of a program and returns it. */
async function shown(desktop: DesktopSession, kind: string): Promise<DesktopWindow> {
  let found: DesktopWindow | undefined;
  await expect
    .poll(async () => {
      found = (await desktop.getState()).windows.find((window) => window.class === kind);
      return found?.class;
    }, patience)
    .toBe(kind);
  return found as DesktopWindow;
}

/** Returns red, green and blue of a pixel. Our PNGs use no row filter. */
function pixel(png: Buffer, x: number, y: number): readonly number[] {
  const width = png.readUInt32BE(16);
  const data = png.subarray(41, 41 + png.readUInt32BE(33));
  const at = y * (1 + width * 3) + 1 + x * 3;
  return [...inflateSync(data).subarray(at, at + 3)];
}

function call(name: string, input: object) {
  return { toolCalls: [{ name, input: { ...input } }] };
}

/** Returns the whole text that the model was shown, and the number of images. */
function shownTo({ messages }: ModelRequest): { readonly text: string; readonly pictures: number } {
  const json = JSON.stringify(messages);
  const texts = [...json.matchAll(/"text":("(?:[^"\\]|\\.)*")/gu)].map(([, text = ""]) =>
    String(JSON.parse(text)),
  );
  return { text: texts.join("\n"), pictures: [...json.matchAll(/"iVBORw0KGgo/gu)].length };
}

/** Returns the middle of the last element whose line starts with this text. */
function middleOf(text: string, line: string): { readonly x: number; readonly y: number } {
  const lines = text.split("\n").filter((each) => each.trim().startsWith(`- ${line}`));
  const [, x = 0, y = 0, width = 0, height = 0] =
    / at (\d+),(\d+) size (\d+)x(\d+)$/u.exec(lines.at(-1) ?? "")?.map(Number) ?? [];
  return { x: x + Math.floor(width / 2), y: y + Math.floor(height / 2) };
}

describe.skipIf("missing" in programs)("DesktopSession with a real X server", () => {
  beforeAll(async () => {
    if ("missing" in programs) return;
    folder = await mkdtemp(join(tmpdir(), "reeve-desktop-"));
    display = await Display.start(programs);
  });

  afterAll(async () => {
    await display.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test("DesktopSession reports a screen without windows on an empty desktop", async () => {
    const state = await open().getState();
    expect(state).toEqual({ screen: { width: 640, height: 480 }, pointer: { x: 320, y: 240 }, windows: [] });
  });

  test("DesktopSession reads a window, takes its screenshot and types characters that the layout has and lacks", async () => {
    const file = join(folder, "said");
    const desktop = open();
    const colours = ["-bg", "#204060", "-fg", "#ffffff", "-title", "Schön ☃", "-geometry", "40x10+60+80"];
    const ended = display.run("xterm", ...colours, "-e", "sh", "-c", `read line; echo "$line" > ${file}`);
    const window = await shown(desktop, "XTerm");
    expect(window).toMatchObject({ title: "Schön ☃", x: 61, y: 81, pid: expect.any(Number) });

    await desktop.focus(window.id);
    expect((await desktop.window(window.id)).focused).toBe(true);
    const inside = { x: window.x + window.width - 20, y: window.y + window.height - 4 };
    await expect
      .poll(async () => pixel(await desktop.screenshot(), inside.x, inside.y), patience)
      .toEqual([0x20, 0x40, 0x60]);
    const picture = await desktop.screenshot();
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([640, 480]);
    expect(pixel(picture, 5, 5)).toEqual([0, 0, 0]);
    const part = await desktop.screenshot({ ...window, x: inside.x, y: inside.y, width: 2, height: 3 });
    expect([part.readUInt32BE(16), part.readUInt32BE(20), pixel(part, 1, 2)]).toEqual([
      2,
      3,
      [0x20, 0x40, 0x60],
    ]);

    const text = `Tea for 2, {"a": [1]} ~^| Äñß Ж→☃ done`;
    await desktop.type(text);
    await desktop.press("Enter");
    await ended;
    expect(await readFile(file, "utf8")).toBe(`${text}\n`);
  });

  test("DesktopSession clicks a button in a real program", async () => {
    const desktop = open();
    const ended = display.run("xmessage", "-buttons", "Yes:10,No:20", "Shall I?");
    const { x, y } = await shown(desktop, "Xmessage");
    // The buttons are subwindows; the one that was created last is listed first.
    const places = (await desktop.look()).matchAll(/ {4}- at (\d+),(\d+) size (\d+)x(\d+)$/gmu);
    const [no] = [...places].map((found) => found.map(Number));
    const [, left = 0, top = 0, width = 0, height = 0] = no ?? [];
    expect(left > x && top > y).toBe(true);
    await desktop.click({ x: left + Math.floor(width / 2), y: top + Math.floor(height / 2) });
    expect((await ended).code).toBe(20);
  });

  test("DesktopSession reads the elements of a program with their positions, and fills in its fields by them", async () => {
    const desktop = open();
    const ended = teaForm();
    await shown(desktop, "Yad");
    await expect.poll(() => desktop.look(), patience).toContain(`push button "Order"`);
    const words = await desktop.look();
    expect(words).toMatch(/frame "Tea" at \d+,\d+ size/u);
    expect(words).toContain(`check box "Black"`);
    await desktop.click(middleOf(words, "text"), { count: 2 });
    await desktop.type("Ada");
    await desktop.click(middleOf(words, "check box"));
    await expect
      .poll(() => desktop.look(), patience)
      .toMatch(/check box "Black"(?: \[focused\])? \[checked\]/u);
    expect(await desktop.look()).toContain(`text "Ada"`);
    await desktop.click(middleOf(words, `push button "Order"`));
    expect(await ended).toEqual({ code: 10, stdout: "Ada|TRUE|\n" });
  });

  test("DesktopSession reports a program that hangs, and still reads the other programs", async () => {
    const desktop = open();
    const ended = teaForm();
    const { pid = 0 } = await shown(desktop, "Yad");
    await expect.poll(() => desktop.look(), patience).toContain(`push button "Cancel"`);
    process.kill(pid, "SIGSTOP");
    const words = await desktop.look().finally(() => process.kill(pid, "SIGCONT"));
    expect(words).toMatch(/^\[:\d\.\d+ did not answer GetChildren in time\]$/mu);
    expect(words).toMatch(/window \d+: "Tea" \(Yad/u);
    await desktop.click(middleOf(await desktop.look(), `push button "Cancel"`));
    expect((await ended).code).toBe(20);
  });

  test("DesktopSession lets an agent that sees the screen order tea in a real program", async () => {
    const desktop = open({ useScreenshot: true, useAccessibility: true, settleMs: 20 });
    const ended = teaForm();
    await shown(desktop, "Yad");
    await expect.poll(() => desktop.look(), patience).toContain(`push button "Order"`);
    const pictures: number[] = [];
    const model = scriptedModel([
      (request) => {
        pictures.push(shownTo(request).pictures);
        return call("desktop_click", { ...middleOf(shownTo(request).text, "text"), count: 2 });
      },
      call("desktop_type", { text: "Grace" }),
      call("desktop_press", { key: "Tab" }),
      call("desktop_look", {}),
      call("desktop_screenshot", {}),
      (request) => {
        pictures.push(shownTo(request).pictures);
        return call("desktop_click", middleOf(shownTo(request).text, `push button "Order"`));
      },
      "ordered",
    ]);
    const runtime = await createRuntime({ unknownPrice: "ignore" });
    const tools = desktopTools(desktop);
    const buyer = new Agent({ name: "buyer", model, tools, ephemeral: [desktop] });
    const run = await runtime.submit(buyer, "Order tea for Grace");
    const { output, error: failure } = await run.result();
    await runtime.close();
    expect({ output, failure }).toEqual({ output: "ordered", failure: null });
    expect(await ended).toEqual({ code: 10, stdout: "Grace|FALSE|\n" });
    // What the model sees before a turn is not stored; tool results are.
    expect(pictures).toEqual([1, 2]);
  });

  test("DesktopSession sends wheel turns and a drag to the window under the pointer", async () => {
    const file = join(folder, "mouse");
    const desktop = open();
    // The terminal reports button presses, moves with a button down and wheel turns as sequences that end with M or m.
    const script = String.raw`stty -icanon -echo; printf '\033[?1002h\033[?1006h'; dd bs=1 count=200 2>/dev/null | tr -d '\033' > ${file}`;
    void display.run("xterm", "-geometry", "60x20+40+40", "-e", "sh", "-c", script);
    const { x, y } = await shown(desktop, "XTerm");
    const heard = async () => (await readFile(file, "latin1").catch(() => "")).length;
    await expect
      .poll(async () => {
        await desktop.scroll({ x: x + 50, y: y + 50 }, "down", 2);
        await desktop.drag({ x: x + 20, y: y + 20 }, { x: x + 300, y: y + 200 });
        await desktop.click({ x: x + 90, y: y + 90 }, { button: "right", holding: "Control" });
        return heard();
      }, patience)
      .toBeGreaterThan(100);
    const said = await readFile(file, "latin1");
    expect(said).toMatch(/\[<65;\d+;\d+M/u);
    expect(said).toMatch(/\[<0;\d+;\d+M(?:\[<32;\d+;\d+M)+\[<0;\d+;\d+m/u);
  });

  test("DesktopSession says what is wrong with a position outside the screen, an unknown window and an unknown key", async () => {
    const desktop = open();
    await expect(desktop.click({ x: 640, y: 1 })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("x must be 0 to 639, y must be 0 to 479"),
    });
    await expect(desktop.focus(77)).rejects.toMatchObject({ code: "not_found" });
    await expect(desktop.press("Hyperspace")).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(desktop.screenshot({ x: 700, y: 0, width: 9, height: 9 })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  test("DesktopSession reports a missing accessibility bus and lists the windows that X knows", async () => {
    const desktop = open({ accessibilityBus: "unix:path=/nowhere/bus" });
    const ended = display.run("xmessage", "-buttons", "Go:0", "On my way");
    const { id, x, y } = await shown(desktop, "Xmessage");
    const { accessibility } = await desktop.getState({ useAccessibility: true });
    expect(accessibility).toMatch(/^\[no message bus answers at unix:path=\/nowhere\/bus: /u);
    expect(accessibility).toContain(`window ${id}: "xmessage" (Xmessage) at ${x},${y}`);
    await desktop.click({ x: x + 15, y: y + 40 });
    expect((await ended).code).toBe(0);
  });
});

describe.skipIf("missing" in programs)("DesktopSession with a window manager", () => {
  beforeAll(async () => {
    if ("missing" in programs) return;
    display = await Display.start(programs);
    await display.manage();
  });

  afterAll(() => display.stop());

  test("DesktopSession lists the windows of the window manager, and has it bring a window to the front", async () => {
    const desktop = open();
    const ended = display.run("xmessage", "-buttons", "Done:5", "Behind");
    const behind = await shown(desktop, "Xmessage");
    void display.run("xterm", "-geometry", "80x24+0+0");
    const front = await shown(desktop, "XTerm");
    const order = async () =>
      (await desktop.getState()).windows.map(({ id, focused }) => `${id}${focused ? " focused" : ""}`);
    await desktop.focus(front.id);
    await expect.poll(order, patience).toEqual([`${behind.id}`, `${front.id} focused`]);
    await desktop.focus(behind.id);
    await expect.poll(order, patience).toEqual([`${front.id}`, `${behind.id} focused`]);
    const { x, y } = await desktop.window(behind.id);
    await desktop.click({ x: x + 20, y: y + 40 });
    expect((await ended).code).toBe(5);
  });
});

function teaForm(): Promise<Ended> {
  const fields = ["--field=Name", "--field=Black:CHK"];
  return display.run("yad", "--title", "Tea", "--form", ...fields, "--button=Order:10", "--button=Cancel:20");
}
