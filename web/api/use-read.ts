import { useEffect, useState } from "preact/hooks";
import { errorText } from "./client.ts";
import { connected } from "./runs-feed.ts";

interface Read<Value> {
  readonly value: Value | null;
  readonly problem: string | null;
  /** Reads again. The old value stays until the new one arrives. */
  readonly again: () => void;
}

/** Reads something when a component appears, when `inputs` change, and when the server answers again. */
export function useRead<Value>(
  read: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
): Read<Value> {
  const [state, setState] = useState<Omit<Read<Value>, "again">>({ value: null, problem: null });
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const start = async (): Promise<void> => {
      try {
        const value = await read(stop.signal);
        if (!stop.signal.aborted) setState({ value, problem: null });
      } catch (error) {
        if (!stop.signal.aborted) setState((old) => ({ ...old, problem: errorText(error) }));
      }
    };
    void start();
    return () => stop.abort();
  }, [...inputs, times, connected.value]);
  return { ...state, again: () => setTimes((count) => count + 1) };
}
