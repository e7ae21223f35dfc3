/** The extension's settings, and what of them the server is told (gpulint/server/options.py reads it). */

export type Confidence = "high" | "low";

export interface Settings {
  readonly enable: boolean;
  /** Programs to run as gpulint, tried in order. */
  readonly path: readonly string[];
  /** Python interpreters with gpulint, tried in order. */
  readonly interpreter: readonly string[];
  readonly select: readonly string[] | null;
  readonly ignore: readonly string[];
  readonly confidence: Confidence | null;
  readonly unsafeFixes: boolean;
}

/** What of VS Code's `WorkspaceConfiguration` is used. */
export interface Section {
  get<T>(key: string, otherwise: T): T;
}

export interface ServerOptions {
  select?: readonly string[];
  ignore: readonly string[];
  confidence?: Confidence;
  unsafeFixes: boolean;
}

/** Settings of which a change needs another server; the running one is told of the others. */
export const STARTING = ["gpulint.enable", "gpulint.path", "gpulint.interpreter"];

export function readSettings(section: Section): Settings {
  return {
    enable: section.get("enable", true),
    path: section.get<string[]>("path", []),
    interpreter: section.get<string[]>("interpreter", []),
    select: section.get<string[] | null>("select", null),
    ignore: section.get<string[]>("ignore", []),
    confidence: section.get<Confidence | null>("confidence", null),
    unsafeFixes: section.get("unsafeFixes", false),
  };
}

/** What is not set is left out: then the project's configuration decides. */
export function serverOptions(settings: Settings): ServerOptions {
  return {
    ...(settings.select === null ? {} : { select: settings.select }),
    ignore: settings.ignore,
    ...(settings.confidence === null ? {} : { confidence: settings.confidence }),
    unsafeFixes: settings.unsafeFixes,
  };
}
