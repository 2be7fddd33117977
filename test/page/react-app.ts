// An application of React that shows runs, one run and its session with the hooks of reeve/react.
import { createElement as h, StrictMode, useState, type ReactElement } from "react";
import { createRoot, type Container } from "react-dom/client";
import { createClient } from "../../src/entries/client.ts";
import { ReeveProvider, useClient, useInbox, useRun, useRuns, useSession } from "../../src/entries/react.ts";

function App(): ReactElement {
  const client = useClient();
  const { runs, isLoading } = useRuns();
  const { inbox } = useInbox();
  const [runId, setRunId] = useState<string>();
  const start = async (agent: string): Promise<void> => {
    const { run } = await client.runs.submit({ agent, input: `Ask ${agent}` });
    setRunId(run.runId);
  };
  return h(
    "main",
    null,
    ...["echo", "clerk"].map((agent) =>
      h("button", { key: agent, onClick: () => void start(agent) }, `Start ${agent}`),
    ),
    h("button", { onClick: () => setRunId("run_missing") }, "Show a missing run"),
    h("p", { "data-testid": "runs" }, isLoading ? "loading" : `${runs.length} runs`),
    h("p", { "data-testid": "inbox" }, `${inbox?.waiting ?? "no"} questions`),
    runId !== undefined && h(RunView, { runId, key: runId }),
  );
}

function RunView({ runId }: { readonly runId: string }): ReactElement {
  const client = useClient();
  const { run, text, events, result, approvals, isConnected, error } = useRun(runId);
  const [question] = approvals;
  return h(
    "section",
    null,
    h("h2", null, run?.status ?? "loading"),
    h("p", { "data-testid": "connected" }, isConnected ? "connected" : "lost"),
    h("p", { "data-testid": "text" }, text),
    h("p", { "data-testid": "events" }, events.map(({ seq }) => seq).join(" ")),
    h("p", { "data-testid": "result" }, result === undefined ? "" : JSON.stringify(result.output)),
    error !== null && h("p", { role: "alert" }, error.message),
    question !== undefined &&
      h(
        "button",
        {
          onClick: () =>
            void client.runs.decide(runId, { approvalId: question.approvalId, decision: "approved" }),
        },
        "Approve",
      ),
    run?.sessionId !== undefined && h(Conversation, { sessionId: run.sessionId }),
  );
}

function Conversation({ sessionId }: { readonly sessionId: string }): ReactElement {
  const { entries, text, error } = useSession(sessionId);
  return h(
    "ol",
    { "aria-label": "Conversation" },
    entries.map(({ id, type }) => h("li", { key: id }, type)),
    text !== "" && h("li", { key: "text" }, text),
    error !== null && h("li", { key: "error" }, error.message),
  );
}

// The tests are compiled without the types of the DOM.
const { document } = globalThis as unknown as {
  readonly document: { querySelector(selector: string): Container | null };
};
const container = document.querySelector("#app");
if (container === null) throw new Error("the page has no #app");
createRoot(container).render(h(StrictMode, null, h(ReeveProvider, { client: createClient() }, h(App))));
