import { AgentsPage } from "../pages/agents/agents-page.tsx";
import { ComparePage } from "../pages/compare/compare-page.tsx";
import { FindPage } from "../pages/find/find-page.tsx";
import { SchedulesPage } from "../pages/schedules/schedules-page.tsx";
import { SessionsPage } from "../pages/sessions/sessions-page.tsx";
import { UsagePage } from "../pages/usage/usage-page.tsx";

/** The views that the page loads after it has drawn its first one, by the first part of their path. */
export const laterViews = {
  agents: AgentsPage,
  compare: ComparePage,
  find: FindPage,
  schedules: SchedulesPage,
  sessions: SessionsPage,
  usage: UsagePage,
};
