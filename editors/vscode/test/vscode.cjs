// A stand-in for the part of VS Code's API that the language client and the extension use, in memory. The client and
// the server are the real ones. Tests read and steer it through `fake`.
"use strict";
const { pathToFileURL, fileURLToPath } = require("node:url");

class Disposable {
  constructor(end) {
    this.dispose = end ?? (() => {});
  }
  static from(...all) {
    return new Disposable(() => all.forEach((one) => one.dispose()));
  }
}

class EventEmitter {
  constructor() {
    this.listeners = new Set();
    this.event = (listener, self, disposables) => {
      const bound = self ? listener.bind(self) : listener;
      this.listeners.add(bound);
      const end = new Disposable(() => this.listeners.delete(bound));
      disposables?.push(end);
      return end;
    };
  }
  fire(value) {
    for (const listener of [...this.listeners]) listener(value);
  }
  dispose() {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  constructor() {
    this.token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
  }
  cancel() {}
  dispose() {}
}

class Uri {
  constructor(scheme, path, text) {
    Object.assign(this, { scheme, path, text, authority: "", query: "", fragment: "" });
  }
  static parse(text) {
    const [, scheme, path] = /^([a-z-]+):(?:\/\/[^/]*)?(.*)$/.exec(text);
    return new Uri(scheme, decodeURIComponent(path), text);
  }
  static file(path) {
    return Uri.parse(pathToFileURL(path).href);
  }
  static from({ scheme, path }) {
    return new Uri(scheme, path, `${scheme}:${path}`);
  }
  get fsPath() {
    return this.scheme === "file" ? fileURLToPath(this.text) : this.path;
  }
  toString() {
    return this.text;
  }
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...given) {
    const [start, end] =
      given.length === 4 ? [new Position(given[0], given[1]), new Position(given[2], given[3])] : given;
    Object.assign(this, { start, end });
  }
}

class Selection extends Range {
  get active() {
    return this.end;
  }
}

class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}

class WorkspaceEdit {
  constructor() {
    this.edits = [];
  }
  set(uri, edits) {
    this.edits.push([uri, edits]);
  }
}

class TextDocument {
  constructor(uri, languageId, text, notebook) {
    Object.assign(this, { uri, languageId, text, version: 1, notebook, isClosed: false, isDirty: false, eol: 1 });
  }
  get fileName() {
    return this.uri.fsPath;
  }
  get lineCount() {
    return this.text.split("\n").length;
  }
  getText() {
    return this.text;
  }
  offsetAt({ line, character }) {
    const before = this.text.split("\n").slice(0, line);
    return before.reduce((sum, one) => sum + one.length + 1, 0) + character;
  }
}

class TabInputText {
  constructor(uri) {
    this.uri = uri;
  }
}

const event = () => new EventEmitter();
const events = { tabs: event(), open: event(), close: event(), change: event(), configuration: event() };

const fake = {
  settings: {},
  documents: [],
  tabs: [],
  commands: new Map(),
  executed: [],
  messages: [],
  answers: [],
  log: [],
  statuses: [],
  diagnostics: new Map(),
  providers: {},
  contents: new Map(),
  terminals: [],
  visible: undefined,

  open(path, languageId, text) {
    const document = new TextDocument(Uri.file(path), languageId, text);
    fake.tabs.push({ input: new TabInputText(document.uri) });
    events.tabs.fire({ opened: fake.tabs.slice(-1), closed: [], changed: [] }); // in VS Code tabs come first
    fake.documents.push(document);
    fake.visible = { document, selection: new Selection(new Position(0, 0), new Position(0, 0)) };
    events.open.fire(document);
    return document;
  },
  configure(settings) {
    const before = fake.settings;
    fake.settings = settings;
    const changed = [...new Set([...Object.keys(before), ...Object.keys(settings)])].filter(
      (key) => JSON.stringify(before[key]) !== JSON.stringify(settings[key]),
    );
    const affectsConfiguration = (name) => changed.some((key) => `gpulint.${key}`.startsWith(name));
    return Promise.all([...events.configuration.listeners].map((listener) => listener({ affectsConfiguration })));
  },
  run(command, ...given) {
    return fake.commands.get(command)(...given);
  },
  /** What asks for `fake.providers[kind]` in VS Code, with the first provider that gives something. */
  async provide(kind, ...given) {
    const method = `provide${kind}`;
    for (const provider of fake.providers[`register${kind}Provider`] ?? []) {
      const found = await provider[method]?.(...given);
      if (found && (!Array.isArray(found) || found.length > 0)) return found;
    }
    return undefined;
  },
  dispose() {
    fake.commands.clear();
    fake.providers = {};
    fake.documents.length = fake.tabs.length = 0;
    fake.diagnostics.clear();
    Object.assign(fake, { executed: [], messages: [], answers: [], log: [], statuses: [], terminals: [], settings: {} });
    for (const one of Object.values(events)) one.dispose();
  },
};

const say = (level) => (message, ...rest) => {
  fake.messages.push({ level, message, offers: rest.filter((one) => typeof one === "string") });
  return Promise.resolve(fake.answers.shift());
};

/** What is not written out below: events that never happen, registrations that are kept, functions that do nothing. */
function lenient(known) {
  return new Proxy(known, {
    get(target, name) {
      if (name in target || typeof name === "symbol") return target[name];
      if (name.startsWith("on")) return () => new Disposable();
      if (name.startsWith("register"))
        return (...given) => {
          (fake.providers[name] ??= []).push(given.find((one, place) => place > 0 && typeof one === "object"));
          return new Disposable();
        };
      return () => undefined;
    },
  });
}

const workspace = lenient({
  workspaceFolders: undefined,
  textDocuments: fake.documents,
  notebookDocuments: [],
  isTrusted: true,
  onDidOpenTextDocument: events.open.event,
  onDidCloseTextDocument: events.close.event,
  onDidChangeTextDocument: events.change.event,
  onDidChangeConfiguration: events.configuration.event,
  getConfiguration: () => ({
    get: (key, otherwise) => (key in fake.settings ? fake.settings[key] : otherwise),
    inspect: () => undefined,
  }),
  createFileSystemWatcher: () => lenient({ dispose() {} }),
  getWorkspaceFolder: () => undefined,
  registerTextDocumentContentProvider: (scheme, provider) => {
    fake.contents.set(scheme, provider);
    return new Disposable();
  },
  async applyEdit(edit) {
    for (const [uri, edits] of edit.edits) {
      const document = fake.documents.find((one) => one.uri.toString() === uri.toString());
      const contentChanges = edits
        .map((one) => one[0] ?? one)
        .map(({ range, newText: text }) => {
          const rangeOffset = document.offsetAt(range.start);
          return { range, rangeOffset, rangeLength: document.offsetAt(range.end) - rangeOffset, text };
        })
        .sort((a, b) => b.rangeOffset - a.rangeOffset); // from the end, so that no change moves another
      for (const { rangeOffset: start, rangeLength, text } of contentChanges) {
        document.text = document.text.slice(0, start) + text + document.text.slice(start + rangeLength);
      }
      document.version += 1;
      events.change.fire({ document, contentChanges });
    }
    return true;
  },
});

const window = lenient({
  get activeTextEditor() {
    return fake.visible;
  },
  visibleTextEditors: [],
  visibleNotebookEditors: [],
  tabGroups: { all: [{ tabs: fake.tabs }], onDidChangeTabs: events.tabs.event, onDidChangeTabGroups: () => new Disposable(), activeTabGroup: { activeTab: undefined } },
  state: { focused: true },
  createOutputChannel: (name) => {
    const line = (...given) => fake.log.push(given.join(" "));
    return {
      name, append: line, appendLine: line, info: line, warn: line, error: line, debug: line, trace: line,
      show() { fake.executed.push(["log shown"]); }, clear() {}, dispose() {}, logLevel: 3,
      onDidChangeLogLevel: () => new Disposable(),
    };
  },
  showErrorMessage: say("error"),
  showWarningMessage: say("warning"),
  showInformationMessage: say("information"),
  createTerminal: () => {
    const terminal = { typed: [], show() {}, sendText: (text, run = true) => terminal.typed.push([text, run]) };
    fake.terminals.push(terminal);
    return terminal;
  },
  withProgress: (_, task) => task({ report() {} }, new CancellationTokenSource().token),
});

const languages = lenient({
  match: (selector, document) =>
    [selector].flat().some(
      (one) =>
        (one.scheme === undefined || one.scheme === document.uri.scheme) &&
        (one.language === undefined || one.language === document.languageId) &&
        (one.notebook === undefined || document.notebook !== undefined) &&
        one.pattern === undefined,
    )
      ? 10
      : 0,
  createDiagnosticCollection: () => {
    const own = new Map();
    const set = (uri, found) => fake.diagnostics.set(String(uri), found ?? []);
    return { name: "gpulint", set, delete: (uri) => fake.diagnostics.delete(String(uri)), clear: () => own.clear(), has: () => false, get: (uri) => fake.diagnostics.get(String(uri)), dispose() {} };
  },
  createLanguageStatusItem: () => {
    const item = {};
    fake.statuses.push(item);
    return Object.assign(item, { dispose() {} });
  },
});

const commands = lenient({
  registerCommand: (name, run) => {
    fake.commands.set(name, run);
    return new Disposable(() => fake.commands.delete(name));
  },
  executeCommand: async (...given) => void fake.executed.push(given),
});

const made = {
  __esModule: true, // the client then takes the object itself, which makes up what is missing
  fake, Disposable, EventEmitter, CancellationTokenSource, Uri, Position, Range, Selection, Diagnostic, WorkspaceEdit,
  TabInputText, workspace, window, languages, commands,
  version: "1.91.0",
  env: lenient({ appName: "stand-in", language: "en", machineId: "", sessionId: "", uiKind: 1, clipboard: { writeText: async () => {} } }),
  extensions: { getExtension: () => undefined, all: [], onDidChange: () => new Disposable() },
  notebooks: lenient({}),
  LanguageStatusSeverity: { Information: 0, Warning: 1, Error: 2 },
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  DiagnosticTag: { Unnecessary: 1, Deprecated: 2 },
  TextDocumentSaveReason: { Manual: 1, AfterDelay: 2, FocusOut: 3 },
  Location: class { constructor(uri, range) { Object.assign(this, { uri, range }); } },
  DiagnosticRelatedInformation: class { constructor(location, message) { Object.assign(this, { location, message }); } },
  TextEdit: class { constructor(range, newText) { Object.assign(this, { range, newText }); } },
  MarkdownString: class { constructor(value) { this.value = value ?? ""; } appendCodeblock(code) { this.value += code; } },
  Hover: class { constructor(contents, range) { Object.assign(this, { contents: [contents].flat(), range }); } },
  CodeAction: class { constructor(title, kind) { Object.assign(this, { title, kind }); } },
  CodeActionKind: kinds(),
  CancellationError: class extends Error {},
};

function kinds() {
  class CodeActionKind {
    constructor(value) { this.value = value; }
    append(part) { return new CodeActionKind(this.value ? `${this.value}.${part}` : part); }
  }
  CodeActionKind.Empty = new CodeActionKind("");
  for (const [name, value] of Object.entries({ QuickFix: "quickfix", Refactor: "refactor", RefactorExtract: "refactor.extract", RefactorInline: "refactor.inline", RefactorRewrite: "refactor.rewrite", RefactorMove: "refactor.move", Source: "source", SourceOrganizeImports: "source.organizeImports", SourceFixAll: "source.fixAll", Notebook: "notebook" }))
    CodeActionKind[name] = new CodeActionKind(value);
  return CodeActionKind;
}

/** Classes and enumerations that are only named, never used here. */
module.exports = new Proxy(made, {
  get(target, name) {
    if (!(name in target) && typeof name === "string" && /^[A-Z]/.test(name)) {
      target[name] = new Proxy(class {}, { get: (one, key) => (key in one ? one[key] : typeof key === "string" ? key : undefined) });
    }
    return target[name];
  },
});
