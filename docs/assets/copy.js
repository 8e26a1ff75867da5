// Copy buttons of console examples copy the commands, without prompts and output.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-clipboard-target], .md-clipboard, .md-code__button");
  const block = button && button.closest(".highlight, .language-console");
  const code = block && block.querySelector("code");
  if (!code || !code.querySelector(".gp")) return;
  const commands = [];
  let continues = false;
  for (const line of code.innerText.split("\n")) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (continues) commands.push(line);
    else continue;
    continues = line.endsWith("\\");
  }
  event.stopImmediatePropagation();
  event.preventDefault();
  navigator.clipboard.writeText(commands.join("\n"));
}, true);
