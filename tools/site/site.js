// What the theme leaves to its users: regions that scroll can be reached by the keyboard, and dialogs have names.
const improve = () => {
  for (const region of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .md-sidebar__scrollwrap")) {
    const scrolls = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
    if (scrolls && !region.hasAttribute("tabindex")) region.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav").forEach((one, n) => one.setAttribute("aria-label", `Code ${n + 1}`));
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
};
improve();
addEventListener("load", improve);
addEventListener("resize", improve);
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });
