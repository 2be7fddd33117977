import { AgainPage } from "../pages/again/again-page.tsx";
import { AgentsPage } from "../pages/agents/agents-page.tsx";
import { ComparePage } from "../pages/compare/compare-page.tsx";
import { ExperimentsPage } from "../pages/experiments/experiments-page.tsx";
import { FindPage } from "../pages/find/find-page.tsx";
import { GatewayPage } from "../pages/gateway/gateway-page.tsx";
import { InboxPage } from "../pages/inbox/inbox-page.tsx";
import { ObjectsPage } from "../pages/objects/objects-page.tsx";
import { BulkBar } from "../pages/runs/bulk-bar.tsx";
import { EmptyRuns, NoneFits } from "../pages/runs/empty-runs.tsx";
import { SaveView } from "../pages/runs/save-view.tsx";
import { SchedulesPage } from "../pages/schedules/schedules-page.tsx";
import { SessionsPage } from "../pages/sessions/sessions-page.tsx";
import { UsagePage } from "../pages/usage/usage-page.tsx";
import { Help } from "./help.tsx";
import { ApprovalCard } from "../parts/approval-card.tsx";
import { NewRunForm } from "../parts/new-run-form.tsx";
import { CancelForm, ForkForm, PriorityForm, TopUpForm } from "../parts/order-forms.tsx";
import { Events } from "../pages/run/events.tsx";
import { Messages } from "../pages/run/messages/messages.tsx";
import { Money } from "../pages/run/money-view.tsx";
import { Requests } from "../pages/run/requests/requests.tsx";
import { Saw } from "../pages/run/saw/saw.tsx";
import { Steps } from "../pages/run/steps/steps.tsx";
import { Timeline } from "../pages/run/timeline/timeline.tsx";
// Styles of these views only. They are loaded with the script of the views.
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/sections.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/later.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/timeline.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/saw.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/compare.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/steps.css";
// oxlint-disable-next-line import/no-unassigned-import -- a style sheet exports nothing
import "../style/experiments.css";

/** The views that the page loads after its first view is drawn, by the first part of their path. */
export const laterViews = {
  again: AgainPage,
  agents: AgentsPage,
  compare: ComparePage,
  experiments: ExperimentsPage,
  find: FindPage,
  gateway: GatewayPage,
  inbox: InboxPage,
  objects: ObjectsPage,
  schedules: SchedulesPage,
  sessions: SessionsPage,
  usage: UsagePage,
};

/** The tabs of a run that are loaded together with these views. */
export const laterTabs = {
  timeline: Timeline,
  saw: Saw,
  money: Money,
  events: Events,
  messages: Messages,
  requests: Requests,
  steps: Steps,
};

/** The forms of the dialogs and of questions. */
export const laterForms = { ApprovalCard, NewRunForm, TopUpForm, CancelForm, PriorityForm, ForkForm };

/** The parts that are needed only after an action of the person, or when there are no runs. */
export const laterParts = { BulkBar, EmptyRuns, Help, NoneFits, SaveView };
