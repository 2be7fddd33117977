import { expect, test } from "vitest";
import { deadLetter, decisions, submitRun, waitsForPerson } from "./page-runs.ts";
import { reversed } from "./company.ts";
import { goTo, serverIsDown } from "./page-server.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, stage, open, openWatched } = pageTests();

test("the empty page says what a run is, and New run starts one and opens it", async () => {
  const page = await open("/");
  await page.getByRole("heading", { name: "No runs yet" }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("writer");
  await page.getByLabel("Task").fill("Summarise the incident");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("heading", { name: "Summarise the incident" }).waitFor();
  await page.getByText("one missing index").waitFor();
  await page.getByText("Done", { exact: true }).waitFor();
  // The playhead of a run that took milliseconds stands at the end.
  await page.getByRole("button", { name: "End", pressed: true }).waitFor();
  expect(await page.getByRole("slider", { name: "Playhead" }).inputValue()).toBe("1000");
});

test("the page's list of runs follows changes, filters by text and shows a group", async () => {
  const page = await open("/runs");
  await page.getByRole("link", { name: "Summarise the incident" }).waitFor();
  const runId = await submitRun(server, "publisher", "Publish the patch");
  await page.getByRole("link", { name: "Publish the patch" }).waitFor();
  await page.getByText("Waits for you").last().waitFor();
  await page.getByLabel("Filter runs").fill("cost>50");
  await page.getByText("No run fits").waitFor();
  await page.getByRole("button", { name: "Clear the filter" }).click();
  for (const key of ["v", "ArrowRight", "ArrowRight", "Enter"]) await page.keyboard.press(key);
  await page.getByRole("link", { name: "Publish the patch" }).waitFor();
  expect(await page.getByRole("link", { name: "Summarise the incident" }).count()).toBe(0);
  await (await server.runtime.find(runId))?.cancel();
});

test("an approval in the page's inbox makes the call, and a second tab says who answered first", async () => {
  const runId = await submitRun(server, "publisher", "Publish once");
  await waitsForPerson(server, runId);
  const first = await open(`/inbox?run=${runId}`);
  const { page: second, expect: expectFailures } = await openWatched(`/inbox?run=${runId}`);
  // The answer to a lost race. The run may have ended since.
  expectFailures({ says: /status of 40[49]/u, path: new RegExp(`^/api/runs/${runId}/decide$`, "u") });
  await second.getByRole("button", { name: "Edit" }).click();
  await second.getByLabel("command").fill("npm publish --dry-run");
  await first.getByRole("button", { name: "Approve" }).click();
  await first.getByText("Approved by you").waitFor();
  await second.getByRole("button", { name: "Approve with 1 change" }).click();
  await second.getByText(/approved this (?:just now|.* ago).*Your change was not used\.$/u).waitFor();
  await first.goto(`${server.url}/runs/${runId}/conversation`);
  await first.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toHaveLength(1);
});

test("a question that a person closes on the page leaves their list, stays open for others, and comes back with undo", async () => {
  const runId = await submitRun(server, "publisher", "Publish some day");
  await waitsForPerson(server, runId);
  const stillOpen = async (): Promise<number> => (await server.runtime.approvals({ runId })).approvals.length;
  const page = await open(`/inbox?run=${runId}`);
  await page.getByRole("button", { name: "Approve" }).waitFor();
  const badge = async (): Promise<number> =>
    Number.parseInt((await page.locator(".top .badge").textContent()) ?? "", 10);
  const all = await badge();
  await page.keyboard.press("x");
  await page.getByText("Nothing was decided.").waitFor();
  expect([await stillOpen(), await page.locator(".inbox-item").count()]).toEqual([1, 0]);
  await page.keyboard.press("u");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.getByRole("button", { name: "Tomorrow" }).click();
  await page.getByText("Nothing was decided.").waitFor();
  // Badge, figure and saved view count the same: without what the person has put away.
  await page.goto(`${server.url}/runs?show=waits`);
  const figure = page.locator(".facts .big").first();
  const shownFigure = async (): Promise<number> => Number.parseInt((await figure.textContent()) ?? "", 10);
  await expect.poll(badge).toBe(all - 1);
  await expect.poll(shownFigure).toBe(all - 1);
  await expect.poll(() => page.locator(`.table.runs a[href="/runs/${runId}"]`).count()).toBe(0);
  await page.goto(`${server.url}/inbox?run=${runId}`);
  await page.getByRole("button", { name: "Closed and snoozed 1" }).click();
  await page.getByText(/^until .* 09:00$/u).waitFor();
  await page.getByRole("button", { name: "Put back on the list" }).click();
  await page.goto(`${server.url}/inbox?run=${runId}&group=agent`);
  await page.locator("summary", { hasText: "publisher" }).waitFor();
  expect(await stillOpen()).toBe(1);
  await (await server.runtime.find(runId))?.cancel();
});

test("all items of a part of the page's inbox are closed at once, and come back with undo", async () => {
  for (const name of ["one", "two"]) {
    const runId = await submitRun(server, "counted", `Count to ${name}`);
    await (await server.runtime.find(runId))?.result();
  }
  const page = await open("/inbox?kind=run&agent=counted");
  const items = page.locator(".inbox-item");
  await page.getByRole("button", { name: /^Close all \d+$/u }).waitFor();
  const count = await items.count();
  await page.getByRole("button", { name: `Close all ${count}` }).click();
  await page.getByText(`${count} items are off your list. Nothing was decided.`).waitFor();
  expect(await items.count()).toBe(0);
  await page.keyboard.press("u");
  await expect.poll(() => items.count()).toBe(count);
});

test("a long call on the page keeps its buttons in view and is approved only after its last line was in view", async () => {
  const runId = await submitRun(server, "longhand", "Publish at length");
  await waitsForPerson(server, runId);
  const page = await open(`/inbox?run=${runId}`);
  const approve = page.getByRole("button", { name: "Approve" });
  await page.getByText(/\d+ lines not read yet/u).waitFor();
  expect(await approve.isDisabled()).toBe(true);
  expect((await approve.boundingBox())?.y).toBeLessThan(page.viewportSize()?.height ?? 0);
  await page.keyboard.press("a");
  await page.getByText(/Read the whole call first/u).waitFor();
  expect(await decisions(server, runId)).toEqual([]);
  await page.evaluate("document.querySelector('.asked').scrollTo(0, 1e6)");
  await page.getByText(/lines not read yet/u).waitFor({ state: "detached" });
  await page.keyboard.press("a");
  await page.getByText("Approved by you").waitFor();
  expect(await decisions(server, runId)).toHaveLength(1);
});

test("an edited call on the page is checked before it is approved, runs with the person's arguments, and shows both versions", async () => {
  const runId = await submitRun(server, "republisher", "Publish with care");
  const { page, expect: expectFailures } = await openWatched(`/runs/${runId}/conversation`);
  const refused = expectFailures({ says: /status of 400/u, path: /\/decide$/u });
  await page.getByRole("heading", { name: /wants to call publish/u }).waitFor();
  await page.keyboard.press("e");
  const command = page.getByLabel("command");
  await command.fill("");
  await page.getByText("This field is needed.").waitFor();
  await page.getByRole("button", { name: "Approve with 1 change" }).click();
  await page.getByText("Correct the marked arguments first.").waitFor();
  await command.fill("npm publish --dry-run");
  await page.getByText("This field is needed.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Edit as JSON" }).click();
  const json = page.getByLabel("Arguments, as JSON");
  expect(JSON.parse(await json.inputValue())).toEqual({ command: "npm publish --dry-run" });
  await json.fill('{ "comand": "npm publish"');
  await page.getByText("The arguments are not valid JSON.").waitFor();
  await json.fill('{ "comand": "npm publish" }');
  await page.getByRole("button", { name: "Approve with 2 changes" }).click();
  await page.getByText(/^The edited arguments do not match the schema of publish/u).waitFor();
  expect(await decisions(server, runId)).toEqual([]);
  refused();
  await json.fill('{ "command": "npm publish --dry-run" }');
  await page.getByRole("button", { name: "Edit as fields" }).click();
  expect(await command.inputValue()).toBe("npm publish --dry-run");
  await page.getByRole("button", { name: "Approve with 1 change" }).click();
  expect(await shown(page.getByText("You changed the arguments of publish and approved the call"))).toBe(
    true,
  );
  expect(await decisions(server, runId)).toMatchObject([{ input: { command: "npm publish --dry-run" } }]);
  const call = page.locator(".tool", { hasText: "dry-run" });
  const showsEdit = async (): Promise<void> => {
    expect(await call.locator("summary code").textContent()).toBe("npm publish --dry-run");
    const [asked, changed] = await call.locator(".edited pre").allTextContents();
    expect([asked, changed]).toEqual([
      expect.stringContaining("--tag latest"),
      expect.stringContaining("--dry-run"),
    ]);
    expect(await shown(call.getByText("With the changed arguments"))).toBe(true);
  };
  await showsEdit();
  await goTo(page, `${server.url}/inbox?run=${runId}`);
  await page.getByRole("heading", { name: "What republisher did before it asked" }).waitFor();
  await showsEdit();
  await page.getByRole("button", { name: "Approve" }).click();
  const run = await server.runtime.find(runId);
  await run?.result();
  await goTo(page, `${server.url}/sessions?id=${encodeURIComponent(run?.sessionId ?? "")}`);
  await page.locator(".thread").getByText("Published.").waitFor();
  await showsEdit();
});

test("the page shows hidden characters of a call as escapes in the inbox, the thread and the edit field, and changes none", async () => {
  const runId = await submitRun(server, "sneak", "Clean up");
  await waitsForPerson(server, runId);
  const page = await open(`/inbox?run=${runId}`);
  const escaped = String.raw`rm -rf \u202etxt.ssentoh/\u2066 # \udb40\udc68\udb40\udc69\u200b`;
  await page.getByRole("button", { name: `publish: ${escaped}` }).waitFor();
  expect(await page.locator("pre.command").first().textContent()).toBe(escaped);
  await page.getByText(String.raw`"target": "prod\u200b"`).waitFor();
  await goTo(page, `${server.url}/runs/${runId}/conversation`);
  await page.locator("pre.command").first().waitFor();
  expect(await page.locator("main").textContent()).not.toMatch(/[\p{Cf}]/u);
  await page.getByRole("button", { name: "Edit" }).click();
  expect(await page.getByLabel("command").inputValue()).toBe(`"${escaped}"`);
  await page.getByLabel("target").fill('"test"');
  await page.getByRole("button", { name: "Approve with 1 change" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([{ input: { command: reversed, target: "test" } }]);
});

test("a call that is denied on the page does not run, and the agent reads the reason", async () => {
  const runId = await submitRun(server, "publisher", "Publish today");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: /^Deny/u }).click();
  await page.getByLabel(/Reason/u).fill("Wait for the notes.");
  await page.getByRole("button", { name: "Deny the call" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([
    { decision: "denied", reason: "Wait for the notes." },
  ]);
});

test("a question on the page offers its choices, and the chosen one is the answer", async () => {
  const runId = await submitRun(server, "triage", "Answer the mail");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: "Second item, $31.50" }).click();
  await page.getByText("The refund is on its way.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([
    { decision: "approved", input: "Second item, $31.50" },
  ]);
});

test("text appears on the page while the model writes it, also over a restart, and steering arrives unless it is taken back", async () => {
  const runId = await submitRun(server, "desk", "Is 0.9 ready to ship?");
  const { page, expect: expectFailures } = await openWatched(`/runs/${runId}/conversation`);
  await page.getByText("Not yet: two tests are").waitFor();
  await page.getByText("writing", { exact: true }).waitFor();
  await page.getByLabel("Steer desk").fill("Check the licence, too.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/sent: Check the licence, too/u).waitFor();
  await page.getByLabel("Steer desk").fill("Then rest.");
  await page.getByRole("button", { name: "Queue" }).click();
  const queued = page.getByRole("list", { name: "Not read by desk yet" });
  await queued.getByText("Check the licence, too.").waitFor();
  await queued.getByRole("listitem").filter({ hasText: "Then rest." }).getByRole("button").click();
  await page.getByText("Taken back.").waitFor();
  expect(await page.getByLabel("Steer desk").inputValue()).toBe("Then rest.");
  await queued.getByText("Then rest.").waitFor({ state: "detached" });
  const answers = expectFailures(serverIsDown);
  await server.stop();
  await page.getByText(/The server stopped answering/u).waitFor();
  // Nothing is blanked.
  await page.getByText("Is 0.9 ready to ship?").first().waitFor();
  await server.start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  await page.getByText("Live", { exact: true }).first().waitFor();
  answers();
  stage.open("desk");
  await page.getByText("one advisory is open.").waitFor();
  await page.getByText("Steering", { exact: true }).waitFor();
  expect(await page.getByText("Follow-up", { exact: true }).count()).toBe(0);
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("a run is paused, resumed and cancelled from its view on the page", async () => {
  const runId = await submitRun(server, "publisher", "Publish later");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("heading", { name: /wants to call publish/u }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByText("1 agent stops.").waitFor();
  await page.getByLabel(/Reason/u).fill("Not today.");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
  await page.getByText("Cancelled", { exact: true }).waitFor();
  // The run and its agent say who cancelled them, and why.
  await page.getByText("by you: Not today.", { exact: true }).waitFor();
  // A question of an agent that ended cannot be answered.
  await page.getByText("No one decided on publish before publisher ended.").waitFor();
  expect(await page.getByRole("button", { name: /^Approve/u }).count()).toBe(0);
  expect(await shown(page.getByText("publisher was cancelled by you: Not today."))).toBe(true);
});

test("the page shows a run as being cancelled from the order until its last task has ended", async () => {
  const runId = await submitRun(server, "publisher", "Publish never");
  await waitsForPerson(server, runId);
  const run = await server.runtime.find(runId);
  await run?.cancel("Enough.");
  await run?.result();
  const page = await open(`/runs/${runId}/events?find=run_cancel`);
  await page.getByText("Cancelled", { exact: true }).waitFor();
  await page.locator(".event-row .number").first().click();
  await page.getByText("Cancelling", { exact: true }).waitFor();
  expect(await shown(page.getByText("by user: Enough.", { exact: true }))).toBe(true);
});

test("the page says what happened when a run stopped at its budget, and a top-up on the page continues the run", async () => {
  const runId = await submitRun(server, "nightly", "Nightly dependency updates");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("region", { name: "Stopped at its budget" }).waitFor();
  await page.getByRole("button", { name: "Top up $0.03 and continue" }).click();
  await page.getByText("Updated.").last().waitFor();
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("the page offers a top-up only to a person who may make it, on the run and in the inbox, and names who may", async () => {
  const runId = await submitRun(server, "nightly", "Nightly dependency updates");
  await (await server.runtime.find(runId))?.result();
  const page = await open("/runs");
  let left = 0;
  await page.route("**/api/access", (request) =>
    request.fulfill({ json: { name: "t", scope: "run", tenantId: null, userId: null } }),
  );
  await page.route(`**/api/runs/${runId}/top-up`, async (request) => {
    const answer = (await (await request.fetch()).json()) as { readonly lacks: object };
    const lacks = { ...answer.lacks, amount: Math.min(left, 0.03) };
    await request.fulfill({ json: { maxCostUsd: left, maxTurns: 0, maxTokens: 0, deadlineMs: 0, lacks } });
  });
  const words = page.getByText("Only a person with the scope admin may raise the budget of this run.");
  const buttons = page.getByRole("button", { name: /Top up/u });
  const places = [`/runs/${runId}/conversation`, `/inbox?run=${runId}`];
  for (const path of places) {
    await page.goto(server.url + path);
    await words.first().waitFor();
    expect([path, await buttons.count()]).toEqual([path, 0]);
  }
  left = 0.4;
  for (const path of places) {
    await page.goto(server.url + path);
    await page
      .getByText("You may add $0.40 in all. A person with the scope admin may add more.")
      .first()
      .waitFor();
    expect(await shown(page.getByRole("button", { name: "Top up $0.03 and continue" }))).toBe(true);
  }
});

test("the page offers more turns for a run that stopped at its turns, on the run and in the inbox, and the run continues", async () => {
  const runId = await submitRun(server, "counted", "Count the pages");
  await (await server.runtime.find(runId))?.result();
  const page = await open(`/runs/${runId}/conversation`);
  const offer = page.getByRole("button", { name: "Top up 1 turn and continue" });
  await offer.waitFor();
  await page.getByRole("region", { name: "Stopped at its turns" }).waitFor();
  await page.getByRole("button", { name: "Other amount" }).click();
  // The amount follows when the page knows what the person may add.
  await expect.poll(() => page.getByLabel(/Turns to add/u).inputValue()).toBe("1");
  expect(await page.getByLabel(/Dollars to add/u).count()).toBe(0);
  await page.keyboard.press("Escape");
  await page.keyboard.press("1");
  const about = page.getByRole("complementary", { name: "About counted" });
  expect(await about.locator(".chip").textContent()).toBe("Stopped at its turns");
  await page.goto(`${server.url}/inbox?run=${runId}`);
  expect(await shown(page.getByText("Stopped at 1 turn").first())).toBe(true);
  await offer.click();
  await page.goto(`${server.url}/runs/${runId}/conversation`);
  await page.getByText("Counted.").last().waitFor();
});

test("a chat on the page streams the answer, keeps it in the session, continues it and stops a run", async () => {
  const page = await open("/sessions?new=1");
  await page.getByLabel("With").selectOption("chatter");
  await page.getByLabel("Message").fill("Is it ready?");
  await page.keyboard.press("Enter");
  await page.getByText("Almost: one t").waitFor();
  expect(await page.getByText("one test is flaky.").count()).toBe(0);
  stage.open("chatter");
  await page.getByText("one test is flaky.").first().waitFor();
  await page.getByRole("button", { name: /^Stop/u }).waitFor({ state: "hidden" });
  await page
    .getByLabel("Files", { exact: true })
    .setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("two lines") });
  await page.getByRole("button", { name: "Remove notes.txt" }).waitFor();
  await page.getByLabel("Message").fill("Then fix it.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("I am at it").waitFor();
  await page.getByRole("button", { name: /^Stop/u }).click();
  await page.getByRole("button", { name: /^Stop/u }).waitFor({ state: "hidden" });
  await page.reload();
  await page.getByText("[notes.txt]").first().waitFor();
  await page
    .locator(".run-card", { hasText: "of $0.50" })
    .getByRole("img", { name: /of \$0\.50 spent/u })
    .first()
    .waitFor();
  expect(await shown(page.locator(".tree-line").nth(2))).toBe(true);
});

test("a chat on the page that failed shows the message, the error and what to do next, also after a reload", async () => {
  const page = await open("/sessions?new=1");
  await page.getByLabel("With").selectOption("keyless");
  await page.getByLabel("Message").fill("Is it there?");
  await page.keyboard.press("Enter");
  const failed = page.getByRole("region", { name: "keyless did not answer" });
  await failed.getByText("The key of stage is missing. <b>Set STAGE_KEY.</b>").waitFor();
  await page.reload();
  await failed.getByText(/Check the key/u).waitFor();
  await page.getByRole("log").getByText("Is it there?").first().waitFor();
  expect(await shown(failed.getByRole("link", { name: "Open the run" }))).toBe(true);
});

test("a filter of the page searches all runs before it says that none matches", async () => {
  const page = await open("/usage");
  const one = (await server.runtime.list({ limit: 1 })).runs[0];
  const pages = [50, 50, 18];
  await page.route(/\/api\/runs\?/u, (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get("after") ?? 0);
    const runs = Array.from({ length: pages[after] ?? 0 }, (_each, at) => ({
      ...one,
      runId: `run_${after}-${at}`,
      title: after === 2 && at === 17 ? "The oldest run" : "A run",
    }));
    return route.fulfill({ json: { runs, next: after < 2 ? String(after + 1) : null } });
  });
  await page.goto(`${server.url}/runs?find=oldest`);
  await page.getByRole("link", { name: "The oldest run" }).waitFor();
  await page.getByLabel("Filter runs").fill("absent");
  await page.getByText("All 118 runs were looked at.").waitFor();
  expect(await page.getByRole("row").count()).toBe(1);
});

test("a message that is sent on the page before the list of agents has arrived starts a run of the first agent", async () => {
  const page = await open("/runs");
  const sent = Promise.withResolvers<void>();
  await page.route("**/api/agents", async (route) => {
    await sent.promise;
    await route.continue();
  });
  await page.goto(`${server.url}/sessions?new=1`);
  await page.getByLabel("Message").fill("Is it ready?");
  const answer = page.waitForResponse(
    (response) => response.url().endsWith("/api/runs") && response.request().method() === "POST",
  );
  await page.keyboard.press("Enter");
  sent.resolve();
  expect((await answer).status()).toBe(201);
  await page.unroute("**/api/agents");
});

test("the page compares a fork with another message with its origin, and shows shared steps as free", async () => {
  const runId = await submitRun(server, "writer", "Write about the outage");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByText("Done", { exact: true }).waitFor();
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByRole("link", { name: "Compare" }).click();
  await page.getByText("the same 1 step").waitFor();
  expect(await page.getByText("free", { exact: true }).count()).toBe(1);
  expect(
    await shown(
      page
        .getByText("only B")
        .or(page.getByText("first", { exact: true }))
        .first(),
    ),
  ).toBe(true);
});

test("the key F on the page forks at the newest event before the page has read the log", async () => {
  const runId = await submitRun(server, "writer", "Write about the newest event");
  await (await server.runtime.find(runId))?.result();
  const page = await open("/usage");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(/\/tasks$/u, async (route) => {
    await released;
    await route.continue();
  });
  await goTo(page, `${server.url}/runs/${runId}/conversation`);
  await page.getByText("Done", { exact: true }).waitFor();
  await page.keyboard.press("f");
  await page.getByRole("heading", { name: "Fork this run" }).waitFor();
  release();
  await page.getByRole("heading", { name: /^Fork at event \d+$/u }).waitFor();
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByRole("button", { name: "Start the fork" }).click();
  expect(await shown(page.getByRole("link", { name: `Fork of ${runId}` }))).toBe(true);
});

test("the page's agents, schedules and usage show what the server hosts, when it starts and what it spent", async () => {
  const runId = await submitRun(server, "writer", "What does a report cost?");
  await (await server.runtime.find(runId))?.result();
  const page = await open("/agents");
  await page.getByRole("img", { name: "lead may hire 4 agents" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("link", { name: "Schedules" }).click();
  await page.getByRole("button", { name: "New schedule" }).click();
  await page.getByLabel("Name").fill("morning");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("writer");
  await page.getByLabel("Task").fill("Write the report");
  await page.getByRole("button", { name: "Create" }).click();
  const row = page.getByRole("row").filter({ hasText: "morning" });
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("Paused").waitFor();
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Usage" }).click();
  expect(await shown(page.getByRole("row").filter({ hasText: "Total" }))).toBe(true);
});

test("the page's list shows agents, budget and steps of a run, and its badge counts decisions and not stopped runs", async () => {
  const stopped = await submitRun(server, "nightly", "Updates of the night");
  await (await server.runtime.find(stopped))?.result();
  await deadLetter(server, "reviewer");
  const page = await open("/runs");
  const row = page.getByRole("row").filter({ hasText: "Updates of the night" });
  await row.getByText("of $0.05", { exact: true }).waitFor();
  await row.getByText("Stopped at its budget").waitFor();
  expect(await row.getByRole("cell").nth(4).textContent()).toBe("1");
  // The whole status is visible: nothing of it is cut.
  const cut =
    "[...document.querySelectorAll('.runs .word')].filter((word) => word.getBoundingClientRect().right > word.closest('td').getBoundingClientRect().right).length";
  expect(await page.evaluate(cut)).toBe(0);
  await page
    .getByRole("link", { name: /^Inbox/u })
    .first()
    .click();
  await page.getByText("A message could not be delivered").first().waitFor();
  const decisionsShown = page.locator("details", { hasText: "Needs your decision" }).locator(".inbox-item");
  const count = await decisionsShown.count();
  const badge = await page.locator(".top .badge:not(.vacant)").allTextContents();
  expect(badge).toEqual(count === 0 ? [] : [`${count} wait for you`]);
  await page.locator("details", { hasText: "Stopped" }).locator(".inbox-item").first().waitFor();
  await page.locator(".inbox-item", { hasText: "A message could not be delivered" }).first().click();
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByText("A message could not be delivered").waitFor({ state: "detached" });
  expect(await server.runtime.deadLetters("reviewer")).toEqual([]);
});

test("the search of the page shows runs, agents and messages that contain a text", async () => {
  const runId = await submitRun(server, "writer", "Describe the aqueduct");
  await (await server.runtime.find(runId))?.result();
  const page = await open("/usage");
  await page.keyboard.press("/");
  await page.keyboard.type("aqueduct");
  await page.keyboard.press("Enter");
  await page
    .getByRole("region", { name: "Runs" })
    .getByRole("link", { name: /Describe the aqueduct/u })
    .waitFor();
  expect(await shown(page.getByRole("region", { name: "Messages" }).getByRole("link"))).toBe(true);
});

test("a step on the page shows what the model saw, and a fork with a changed model is compared with its origin", async () => {
  const runId = await submitRun(server, "publisher", "Publish with a note");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: /^Approve/u }).click();
  await page.getByText("Done", { exact: true }).waitFor();
  await page.getByText("What the model saw last").waitFor();
  await page.keyboard.press("2");
  await page
    .getByRole("button", { name: /sonnet-5/u })
    .last()
    .click();
  await page.getByText("Result of publish").waitFor();
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByLabel(/Other model/u).fill("stage/haiku-5");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByText("In short: published.").first().waitFor();
  await page.keyboard.press("5");
  // The fork names the model that it called.
  await page.locator(".by-agent tbody td", { hasText: "haiku-5" }).waitFor();
  expect(await page.locator(".by-agent tbody td", { hasText: "sonnet-5" }).count()).toBe(0);
  await page.getByRole("link", { name: "Compare" }).click();
  await page
    .getByText(/In short: published\. · haiku-5/u)
    .first()
    .waitFor();
  expect(await shown(page.getByText(/the same \d+ steps?/u))).toBe(true);
});

test("a fork on the page from a run's last answer repeats that call with the new message and model, and names an empty answer", async () => {
  const runId = await submitRun(server, "writer", "Write about the last answer");
  const page = await open(`/runs/${runId}/timeline`);
  await page.getByText("Done", { exact: true }).waitFor();
  for (const [model, answer] of [
    ["stage/haiku-5", "In short: published."],
    ["stage/mute", "The answer is empty."],
  ] as const) {
    await page.getByRole("button", { name: /sonnet-5/u }).click();
    await page.getByRole("button", { name: "Fork from here" }).click();
    await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
    await page.getByLabel(/Other model/u).fill(model);
    await page.getByRole("button", { name: "Start the fork" }).click();
    await page.getByRole("link", { name: `Fork of ${runId}` }).waitFor();
    expect(await shown(page.getByText(answer))).toBe(true);
    await goTo(page, `${server.url}/runs/${runId}/timeline`);
  }
});

test("a call that a fork made again differs in the page's comparison, also if the fork was cut after it", async () => {
  const runId = await submitRun(server, "writer", "Write about the cut");
  const run = await server.runtime.find(runId);
  await run?.result();
  let at = 0;
  for await (const event of run?.events({ follow: false, types: ["task_end"] }) ?? [])
    if (event.type === "task_end") at = event.seq;
  // The end of the task is recorded together with the answer, so that the fork shares neither.
  const fork = await run?.fork({ at, model: "stage/haiku-5" });
  await fork?.result();
  const page = await open(`/compare?a=${runId}&b=${fork?.runId}`);
  await page.getByText("In short: published.").first().waitFor();
  expect(await page.getByText(/the same \d+ step/u).count()).toBe(0);
});

test("the page shows where the money of a run that stopped at its budget went, by the tasks of each manager", async () => {
  const runId = await submitRun(server, "bureau", "Updates of the week");
  const page = await open(`/runs/${runId}/chart`);
  const card = page.getByRole("region", { name: "Stopped at its budget" });
  // A view that the person has chosen has the room.
  await card.getByRole("link", { name: "Where it went" }).click();
  await card.getByText("1 report", { exact: true }).waitFor();
  const went = card.getByRole("region", { name: "Where it went" });
  await went.getByRole("link", { name: "updater-web" }).waitFor();
  expect(await shown(went.getByRole("img", { name: /of \$0\.06 spent/u }))).toBe(true);
});

test("Esc on the page leaves the search and the edited arguments of a call", async () => {
  const runId = await submitRun(server, "publisher", "Publish or not");
  await waitsForPerson(server, runId);
  const page = await open(`/inbox?run=${runId}`);
  await page.getByRole("heading", { name: "publisher wants to call publish" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.press("Escape");
  await page.keyboard.press("e");
  await page.getByLabel("Arguments of the call").focus();
  await page.keyboard.press("Escape");
  await page.getByLabel("Arguments of the call").waitFor({ state: "detached" });
  expect(await page.getByRole("searchbox", { name: "Find" }).inputValue()).toBe("");
  await page.getByText("Publish or not").first().waitFor();
  await (await server.runtime.find(runId))?.cancel();
});
