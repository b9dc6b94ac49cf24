"""The engine: operators are recorded into a thread's segment, cut, planned and run.

Keeps     what a program sees is what eager execution in program order gives, whatever the switches.
Touches   base, codegen, devices; operators only through what they declare.
Not here  tensors and signatures of calls (tensor/), gradients (gradients/)."""
