import { packageVersion } from "../../../../assembly/package-root.ts";
import { Fault, type Store } from "../../../../kernel/index.ts";
import { allObservers, observedStore, type StoreObserver } from "../observed-store.ts";
import type { OpenParts } from "../open-parts.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { otlpSettings } from "./otlp-variables.ts";

/** Starts the export of the runs that a command executes in a store. */
export type TelemetryExport = (store: Store) => StoreObserver & { close(): Promise<void> };

/** How long a batch of a lost process may have been on its way, in milliseconds: the timeout of OTLP by default. */
const longestExportMs = 10_000;

/**
 * Prepares the export that the standard variables of OpenTelemetry ask for. Returns `undefined` if they ask for none: then nothing is
 * loaded. Call it before the command creates anything, because it refuses wrong variables and missing packages.
 */
export async function telemetryOf(terminal: Terminal): Promise<TelemetryExport | undefined> {
  const settings = otlpSettings(terminal.env);
  if (settings === undefined) return undefined;
  const { openOtlpExporter } = await import("./otlp-exporter.ts");
  const { ExportedRuns } = await import("./exported-runs.ts");
  const warn = (text: string): void => terminal.say(`reeve: ${printable(text)}`);
  const exporter = await openOtlpExporter({
    settings,
    version: packageVersion(),
    onWarning: warn,
    onAbandoned: () => terminal.abandonWork?.(),
  });
  const { hasContent, batch } = settings;
  const repeatMs = batch.scheduledDelayMillis + longestExportMs;
  const onError = (error: unknown): void =>
    warn(`telemetry: a run is not exported any more: ${Fault.from(error).message}`);
  return (store) => new ExportedRuns({ store, exporter, hasContent, repeatMs, onError });
}

/** The store of a command with its observers and the export, which is closed with the command. */
export function watchedStore(
  store: Store,
  open: OpenParts,
  telemetry: TelemetryExport | undefined,
  ...observers: readonly StoreObserver[]
): Store {
  const exported = telemetry === undefined ? [] : [open.add(telemetry(store))];
  const all = [...observers, ...exported];
  return all.length === 0 ? store : observedStore(store, allObservers(...all));
}
