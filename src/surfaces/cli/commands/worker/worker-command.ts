import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Fault } from "../../../../kernel/index.ts";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import { systemClock } from "../../../../runtime/index.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import { hostsOf, listen } from "../../../server/listen.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { interrupted } from "../../terminal/interrupted.ts";
import { portOption, positiveInteger } from "../../terminal/number-option.ts";
import { LostStore } from "../../setup/lost-store.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { hostableAgents, hostRuns } from "../../setup/hosted-agents.ts";
import { extensionSurface, LiveWorkspaces } from "../../setup/live-workspaces.ts";
import { openAskedWorkspace, reportNotices, runtimeOptions } from "../../setup/run-workspace.ts";
import { numberOf, settingsOf, type SettingsOptions } from "../../setup/settings-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { askTrust } from "../../setup/ask-trust.ts";
import { telemetryOf, watchedStore } from "../../setup/telemetry/exported-telemetry.ts";
import { engineOf, type EngineOptions } from "./worker-engine.ts";
import { logFormat, WorkerLog } from "./worker-log.ts";
import { WorkerMetrics } from "./worker-metrics.ts";
import { WorkerProbe } from "./worker-probe.ts";

/** The options of `reeve worker`, as texts from the command line. */
export interface WorkerOptions extends SettingsOptions, EngineOptions {
  readonly store: string;
  readonly concurrency?: string;
  readonly drainTimeout: string;
  readonly port?: string;
  readonly host: string;
  readonly allowHost?: readonly string[];
  readonly logFormat?: string;
}

/** Executes the runs of a store until it is interrupted. */
export async function workerCommand(options: WorkerOptions, terminal: Terminal): Promise<ExitKind> {
  const log = new WorkerLog(terminal, logFormat(options.logFormat, terminal));
  const port = options.port === undefined ? undefined : portOption(options.port);
  const engine = await engineOf(options, log);
  const limits = runtimeLimits(options);
  const flags = settingsOf(options);
  const talk = log.terminal(terminal);
  const telemetry = await telemetryOf(talk);
  const open = new OpenParts();
  const lost = new LostStore();
  try {
    const live = new LiveWorkspaces(open, talk);
    const workspace = live.add(await openAskedWorkspace(flags, talk));
    await askTrust(workspace, talk);
    const findAgents = async (): Promise<readonly string[]> =>
      (await hostableAgents(workspace, flags, talk, { isWorker: true })).flatMap(({ name, isUsable }) =>
        isUsable ? [name] : [],
      );
    const agents = await findAgents();
    const onWarning = (text: string): void => talk.say(text);
    const opened = open.add(await openOwnStore(options.store, { onWarning }));
    const metrics = new WorkerMetrics();
    const store = watchedStore(opened, open, telemetry, metrics, log);
    const workerId = `worker-${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const runtime = open.add(
      await openRuntime({
        ...runtimeOptions(workspace),
        ...limits,
        store,
        surface: extensionSurface(talk, () => live.reload()),
        workerId,
        keepAlive: true,
        // Each run of a session makes the agent of the session again, with the files as they are then.
        sameName: "replace",
        onError: (fault) => {
          log.error(fault);
          lost.note(fault);
        },
        ...(engine.factory !== undefined && { engine: engine.factory }),
      }),
    );
    const onOpen = (other: Workspace): void => void live.add(other);
    const onLeave = (runId: string, reason: string): void =>
      log.write("warn", "run_left_alone", `the run is left alone: ${reason}`, { runId });
    const registerNew = hostRuns(runtime, workspace, { flags, onOpen, onLeave });
    live.whenReloaded(async () => {
      registerNew();
      log.write(
        "info",
        "workspace_reloaded",
        "the files of the workspace were read again, and new runs use them",
        { agents: await findAgents() },
      );
    });
    const probe = new WorkerProbe({
      store,
      clock: systemClock,
      workerId,
      engine: options.engine,
      checkEngine: engine.check,
      metrics,
      hosts: [...hostsOf(options.host), ...(options.allowHost ?? [])],
    });
    const listening = port === undefined ? undefined : await listen(probe, { port, host: options.host });
    if (listening !== undefined) open.add(listening);
    const stopping = interrupted(terminal);
    reportNotices(workspace, talk);
    log.write("info", "worker_started", "the worker claims runs", {
      workerId,
      engine: options.engine,
      agents,
      pid: process.pid,
      ...(listening !== undefined && { url: listening.url }),
    });
    if (agents.length === 0)
      log.write("warn", "no_agents", "no agent is hosted; the notices before this line say why");
    await lost.before(stopping);
    probe.noteDraining();
    log.write("info", "worker_draining", "the worker claims no more runs and finishes calls in flight");
    // The probes answer until the runtime is closed, so that a supervisor sees the drain.
    await runtime.close();
    log.write("info", "worker_stopped", "the worker has released its runs", { workerId });
    return "ok";
  } finally {
    await open.close();
  }
}

/** Returns the runtime options that command line flags set. A flag takes precedence over `reeve.config.ts`. */
function runtimeLimits({ concurrency, drainTimeout }: WorkerOptions): {
  readonly concurrency?: number;
  readonly closeGraceMs: number;
} {
  const seconds = numberOf("--drain-timeout", drainTimeout, {}) ?? 0;
  if (seconds > 86_400)
    throw new Fault(
      "invalid_argument",
      `invalid --drain-timeout ${drainTimeout}: expected at most 86400 seconds`,
    );
  return {
    ...(concurrency !== undefined && { concurrency: positiveInteger("--concurrency", concurrency) }),
    closeGraceMs: seconds * 1_000,
  };
}
