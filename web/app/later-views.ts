import { AgentsPage } from "../agents/agents-page.tsx";
import { ComparePage } from "../compare/compare-page.tsx";
import { FindPage } from "../find/find-page.tsx";
import { SchedulesPage } from "../schedules/schedules-page.tsx";
import { SessionsPage } from "../sessions/sessions-page.tsx";
import { UsagePage } from "../usage/usage-page.tsx";

/** The views that the page loads after it has drawn its first one, by the first part of their path. */
export const laterViews = {
  agents: AgentsPage,
  compare: ComparePage,
  find: FindPage,
  schedules: SchedulesPage,
  sessions: SessionsPage,
  usage: UsagePage,
};
