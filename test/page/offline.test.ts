import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { serverIsDown } from "./page-server.ts";
import { deadLetter, releaseRun, submitRun, waitsForPerson } from "./page-runs.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, openWatched } = pageTests();

test("the page disables buttons that change something while the server does not answer, and keeps what was written", async () => {
  const run = await server.runtime.find(await releaseRun(server));
  await deadLetter(server, "desk");
  const pages: Page[] = [];
  const expected: (() => void)[] = [];
  const openExpecting = async (path: string): Promise<Page> => {
    const { page, expect: expectFailures } = await openWatched(path);
    pages.push(page);
    expected.push(expectFailures(serverIsDown));
    return page;
  };
  const chat = await openExpecting(`/sessions?id=${encodeURIComponent(run?.sessionId ?? "")}`);
  const inbox = await openExpecting("/inbox");
  const runs = await openExpecting("/runs");
  const text = chat.getByLabel("Message", { exact: true });
  await text.fill("Wait for the audit.");
  await inbox.locator(".inbox-item", { hasText: "A message could not be delivered" }).click();
  await runs.getByRole("button", { name: "New run" }).click();
  await runs.getByRole("dialog").getByLabel(/Task/u).fill("Look at the licence");
  const orders: readonly Locator[] = [
    chat.getByRole("button", { name: "Send", exact: true }),
    chat.getByRole("button", { name: /^Stop/u }),
    inbox.getByRole("button", { name: "Send again" }),
    runs.getByRole("dialog").getByRole("button", { name: /^Start/u }),
  ];
  const off = (): Promise<readonly boolean[]> => Promise.all(orders.map((order) => order.isDisabled()));
  await expect.poll(off).toEqual(orders.map(() => false));
  await server.stop();
  for (const page of pages) await page.getByText(/The server stopped answering/u).waitFor();
  // The server hosts agents, so their runs do not continue without it.
  await runs
    .getByText(/Runs that this server executes itself stand still until it is back or another worker/u)
    .waitFor();
  expect(await off()).toEqual(orders.map(() => true));
  // Neither key sends an order.
  await text.press("Escape");
  await text.press("Enter");
  expect(await text.inputValue()).toBe("Wait for the audit.");
  await server.start();
  for (const page of pages)
    await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  for (const answers of expected) answers();
  expect(await off()).toEqual(orders.map(() => false));
});

test("a view of the page opens for the first time while the server does not answer", async () => {
  const { page, expect: expectFailures } = await openWatched("/runs");
  const answers = expectFailures(serverIsDown);
  await server.stop();
  await page.getByText(/The server stopped answering/u).waitFor();
  await page.getByRole("link", { name: "Usage" }).click();
  expect(await shown(page.getByRole("heading", { name: "Usage" }))).toBe(true);
  await server.start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  answers();
});

test("a view of the page whose script the server did not send says so and is loaded again", async () => {
  const { page, expect: expectFailures } = await openWatched("/runs");
  const answers = expectFailures({ says: /net::ERR_FAILED/u, path: /later-views/u });
  await page.route(/later-views/u, (route) => route.abort());
  await page.goto(`${server.url}/usage`);
  await page.getByRole("heading", { name: "This view could not be loaded" }).waitFor();
  const asking = await submitRun(server, "publisher", "Publish the patch");
  await waitsForPerson(server, asking);
  await page.goto(`${server.url}/runs/${asking}/conversation`);
  await page.getByText("The form could not be loaded. Load the page again.").waitFor();
  await page.goto(`${server.url}/usage`);
  await page.getByRole("heading", { name: "This view could not be loaded" }).waitFor();
  await page.unroute(/later-views/u);
  await page.getByRole("button", { name: "Load again" }).click();
  expect(await shown(page.getByRole("heading", { name: "Usage" }))).toBe(true);
  answers();
});
